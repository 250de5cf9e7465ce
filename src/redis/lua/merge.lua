-- SPDX-License-Identifier: BSD-2-Clause
-- ORs a chunk into a shard of the building generation. t0 and t1 are scratch.
-- Its first write is one that a full Redis refuses.
local meta, shard, t0, t1 = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local name, offset, chunk = ARGV[3], tonumber(ARGV[5]), ARGV[6]
local length = tonumber(ARGV[7])
local g = 'g:' .. name .. ':'
local past = offset + #chunk -- one past the last byte written
if #chunk == 0 or offset < 0 or past > length - 8 then
	return redis.error_reply('ERR bloomgate: chunk outside the shard')
end
if not holds(meta, ARGV[1]) then
	return {0, 'token'}
end
local known = call('HMGET', meta, 'building', g .. 'state', g .. 'next',
    g .. 'last', g .. 'shards')
if known[2] == 'lost' then
	return {0, 'lost'}
end
if known[1] ~= name or known[2] ~= 'building' then
	return {0, 'state'}
end
local here = ARGV[4] .. ':' .. ARGV[5]
if (here ~= known[3] and here ~= known[4]) or
    tonumber(ARGV[4]) >= number(known[5]) then
	return {0, 'order'}
end
if call('STRLEN', shard) ~= length then
	return {0, 'lost'}
end

local had = call('BITCOUNT', shard, offset, past - 1)
if had == 0 then
	call('SETRANGE', shard, offset, chunk)
else
	call('SET', t0, call('GETRANGE', shard, offset, past - 1))
	call('SET', t1, chunk)
	call('BITOP', 'OR', t0, t0, t1)
	call('SETRANGE', shard, offset, call('GET', t0))
	call('DEL', t0, t1)
end
local follows = ARGV[4] .. ':' .. text(past)
if past == length - 8 then
	follows = text(tonumber(ARGV[4]) + 1) .. ':0'
end
call('HSET', meta, 'lock-until', lease_end(ARGV[2]), g .. 'next', follows,
    g .. 'last', here)
return {1, call('BITCOUNT', shard, offset, past - 1)}
