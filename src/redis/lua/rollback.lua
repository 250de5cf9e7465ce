-- SPDX-License-Identifier: BSD-2-Clause
-- active and previous change places. With a third argument, the name that shall
-- serve, a second call after a lost answer changes nothing.
local meta, channel, run, name = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local known = call('HMGET', meta, 'epoch', 'seq', 'run-id', 'active', 'previous')
local epoch, active, previous = known[1], known[4], known[5]
if name and name ~= '' and active == name then
	return {1, epoch}
end
if not previous or (name and name ~= '' and previous ~= name) then
	return {0, 'none'}
end
local g = 'g:' .. previous .. ':'
local was = call('HMGET', meta, g .. 'state', g .. 'run-id')
if was[1] ~= 'sealed' then
	return {0, 'lost'}
end
if known[3] ~= run or was[2] ~= run then
	return {0, 'run'}
end
epoch = epoch_after(epoch)
call('HDEL', meta, 'previous')
local change = {'active', previous, 'epoch', epoch}
if active then
	change[#change + 1] = 'previous'
	change[#change + 1] = active
end
call('HSET', meta, unpack(change))
announce(channel, epoch, known[2])
return {1, epoch}
