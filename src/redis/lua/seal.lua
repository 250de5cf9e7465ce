-- SPDX-License-Identifier: BSD-2-Clause
-- Puts the tag into the next shards of a filled generation; the last ones make it
-- sealed.
local meta, token, name, tag = KEYS[1], ARGV[1], ARGV[3], ARGV[4]
local offset, first = tonumber(ARGV[5]), tonumber(ARGV[6])
local g = 'g:' .. name .. ':'
if not holds(meta, token) then
	return {0, 'token'}
end
local known = call('HMGET', meta, 'building', g .. 'state', g .. 'next',
    g .. 'shards', g .. 'sealed', g .. 'run-id', g .. 'tag')
local state, shards, sealed = known[2], number(known[4]), number(known[5])
if state == 'lost' then
	return {0, 'lost'}
end
if known[1] ~= name or known[7] ~= tag or
    (state ~= 'building' and state ~= 'sealed') then
	return {0, 'state'}
end
if known[6] ~= ARGV[7] then
	return {0, 'run'}
end
local past = first + #KEYS - 1
if known[3] ~= known[4] .. ':0' or first > sealed or past > shards then
	return {0, 'incomplete'}
end
for i = 2, #KEYS do
	local found = tag_at(KEYS[i], offset)
	if (found ~= ZERO_TAG and found ~= tag) or
	    call('STRLEN', KEYS[i]) ~= offset + 8 then
		return {0, 'lost'}
	end
end

for i = 2, #KEYS do
	call('SETRANGE', KEYS[i], offset, tag)
end
sealed = math.max(sealed, past)
local change = {'lock-until', lease_end(ARGV[2]), g .. 'sealed', text(sealed)}
if sealed == shards and state ~= 'sealed' then
	for _, v in ipairs({g .. 'state', 'sealed', g .. 'ended', text(clock()),
	    g .. 'elements', ARGV[8], g .. 'set', ARGV[9], g .. 'carried',
	    ARGV[10]}) do
		change[#change + 1] = v
	end
end
call('HSET', meta, unpack(change))
return {1, sealed}
