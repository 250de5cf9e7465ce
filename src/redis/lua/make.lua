-- SPDX-License-Identifier: BSD-2-Clause
-- Makes one shard, whole and empty. The lease is renewed first: a full Redis
-- refuses that before the old key is gone.
local meta, shard, token, name = KEYS[1], KEYS[2], ARGV[1], ARGV[3]
local length = tonumber(ARGV[4])
if not holds(meta, token) then
	return {0, 'token'}
end
local known = call('HMGET', meta, 'building', 'g:' .. name .. ':state')
if known[1] ~= name or known[2] ~= 'making' or length < 16 then
	return {0, 'state'}
end
call('HSET', meta, 'lock-until', lease_end(ARGV[2]))
call('UNLINK', shard)
call('SETRANGE', shard, length - 8, ZERO_TAG)
return {1}
