-- SPDX-License-Identifier: BSD-2-Clause
-- Takes the lock and lists a new generation. Starts with HSET, so that a full
-- Redis refuses it whole.
local meta, channel, token, lease, run, base, tag = KEYS[1], ARGV[1], ARGV[2],
    ARGV[3], ARGV[4], ARGV[5], ARGV[12]
if token == '' or base == '' or string.find(base, '%s') then
	return redis.error_reply('ERR bloomgate: bad token or generation name')
end

local known = call('HMGET', meta, 'epoch', 'run-id', 'lock', 'lock-until',
    'building', 'seq', 'layout')
local epoch, lock, building = known[1], known[3], known[5]
local created = epoch == false and call('EXISTS', meta) == 0
local newrun = known[2] == run and 0 or 1
local now = clock()
local held = text(now + number(lease) * 1000)

if known[7] and known[7] ~= '1' then
	return {0, 'layout'}
end
if lock and lock ~= token and number(known[4]) > now then
	return {0, 'locked', known[4], text(now)}
end
if building then
	call('HSET', meta, 'lock', token, 'lock-until', held)
	local g = 'g:' .. building .. ':'
	local mine = call('HMGET', meta, g .. 'tag', g .. 'created', g .. 'state')
	if lock == token and mine[1] == tag and mine[3] == 'making' then
		return {1, building, number(mine[2]), newrun}
	end
	return {0, 'stale', building}
end

local taken, count = {}, 0
for _, field in ipairs(call('HKEYS', meta)) do
	local name = string.match(field, '^g:(.*):state$')
	if name then
		taken[name] = true
		count = count + 1
	end
end
if count >= 16 then
	return {0, 'full'}
end
local name, nth = base, 1
while taken[name] do
	nth = nth + 1
	name = base .. '.' .. nth
end
if #name > 63 then
	return redis.error_reply('ERR bloomgate: generation name is too long')
end

-- KEY may hold a fingerprint for each of the names tried, one after another.
local key = ARGV[11]
if #key >= nth * 32 then
	key = string.sub(key, nth * 32 - 31, nth * 32)
end
local g = 'g:' .. name .. ':'
if not epoch then
	epoch = epoch_after(false)
	call('HSET', meta, 'layout', '1', 'epoch', epoch)
else
	epoch = false
end
call('HSET', meta, 'lock', token, 'lock-until', held, 'building', name,
    g .. 'state', 'making', g .. 'shards', ARGV[6], g .. 'bits', ARGV[7],
    g .. 'k', ARGV[8], g .. 'scheme', ARGV[9], g .. 'single', ARGV[10],
    g .. 'key', key, g .. 'tag', tag, g .. 'capacity', ARGV[13],
    g .. 'error-rate', ARGV[14], g .. 'elements', '0', g .. 'began', text(now),
    g .. 'ended', '0', g .. 'run-id', run, g .. 'next', '0:0', g .. 'last', '',
    g .. 'sealed', '0', g .. 'carried', '0', g .. 'set', '0', g .. 'created',
    created and '1' or '0')
if epoch then
	announce(channel, epoch, known[6])
end
return {1, name, created and 1 or 0, newrun}
