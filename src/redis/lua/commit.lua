-- SPDX-License-Identifier: BSD-2-Clause
-- Makes a sealed generation the one that serves: the pointer is the swap. Starts
-- with HDEL, which a full Redis takes: the old generation can then go.
local meta, channel, token, name, run = KEYS[1], ARGV[1], ARGV[2], ARGV[3],
    ARGV[4]
local g = 'g:' .. name .. ':'
local known = call('HMGET', meta, 'epoch', 'seq', 'run-id', 'active', 'previous',
    'building', 'retiring', g .. 'state', g .. 'run-id', g .. 'shards',
    g .. 'sealed', g .. 'next')
local epoch, active, retiring = known[1], known[4], known[7]
if active == name then
	return {1, epoch}
end
if not holds(meta, token) then
	return {0, 'token'}
end
if known[6] ~= name or known[8] ~= 'sealed' or known[10] ~= known[11] or
    known[12] ~= known[10] .. ':0' then
	return {0, 'state'}
end
if known[9] ~= run then
	return {0, 'run'}
end

local previous = known[5]
if previous then
	retiring = enlist(retiring, previous)
	previous = false
end
if active then
	if ARGV[5] == '1' and known[3] == run and
	    call('HGET', meta, 'g:' .. active .. ':state') == 'sealed' then
		previous = active
	else
		retiring = enlist(retiring, active)
	end
end
epoch = epoch_after(epoch)
call('HDEL', meta, 'building', 'lock', 'lock-until', 'previous')
local change = {'active', name, 'run-id', run, 'epoch', epoch}
if previous then
	change[#change + 1] = 'previous'
	change[#change + 1] = previous
end
if retiring then
	change[#change + 1] = 'retiring'
	change[#change + 1] = retiring
end
call('HSET', meta, unpack(change))
announce(channel, epoch, known[2])
return {1, epoch}
