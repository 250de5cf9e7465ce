-- SPDX-License-Identifier: BSD-2-Clause
-- The data are of an earlier moment than the caller has seen: nothing in them is
-- trusted until it has been rebuilt. A full Redis takes HDEL, and then the rest.
local meta, channel = KEYS[1], ARGV[1]
local known = call('HMGET', meta, 'epoch', 'seq')
if not known[1] or known[1] ~= ARGV[2] then
	return {0, 'epoch'}
end
local epoch = text(math.max(number(known[1]) + 1, clock(),
    number(ARGV[3]) + 1))
call('HDEL', meta, 'run-id')
call('HSET', meta, 'epoch', epoch)
announce(channel, epoch, known[2] or '0')
return {1, epoch}
