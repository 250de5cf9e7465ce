-- SPDX-License-Identifier: BSD-2-Clause
-- From now on adds go to the building generation too.
local meta, channel, token, name = KEYS[1], ARGV[1], ARGV[2], ARGV[4]
if not holds(meta, token) then
	return {0, 'token'}
end
local state = 'g:' .. name .. ':state'
local known = call('HMGET', meta, 'building', state, 'epoch', 'seq')
local epoch = known[3]
if known[1] ~= name or (known[2] ~= 'making' and known[2] ~= 'building') then
	return {0, 'state'}
end
if known[2] == 'building' then
	call('HSET', meta, 'lock-until', lease_end(ARGV[3]))
	return {1, epoch}
end
epoch = epoch_after(epoch)
call('HSET', meta, 'lock-until', lease_end(ARGV[3]), state, 'building', 'epoch',
    epoch)
announce(channel, epoch, known[4])
return {1, epoch}
