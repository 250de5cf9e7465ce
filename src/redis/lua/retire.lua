-- SPDX-License-Identifier: BSD-2-Clause
-- Abort, retire, and going on with either: the pointer goes first, then a few
-- shards a call, then the generation. Starts with HDEL or UNLINK: it must work
-- where Redis is full.
local FIELDS = {'state', 'shards', 'bits', 'k', 'scheme', 'single', 'key', 'tag',
    'capacity', 'error-rate', 'elements', 'began', 'ended', 'run-id', 'next',
    'last', 'sealed', 'carried', 'set', 'created'}
local meta, channel, token, name = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local first, shards = tonumber(ARGV[4]), tonumber(ARGV[5])
local g = 'g:' .. name .. ':'
local known = call('HMGET', meta, 'epoch', 'seq', 'active', 'previous',
    'building', 'retiring', 'lock', 'lock-until', g .. 'state')
local epoch, building, retiring, lock = known[1], known[5], known[6], known[7]

if known[3] == name then
	return {0, 'active'}
end
if building == name and lock and lock ~= token and
    number(known[8]) > clock() then
	return {0, 'token'}
end

local drop, change = {}, {}
local there = known[9] ~= false or listed(retiring, name)
local goes = first + #KEYS - 1 >= shards
if building == name then
	drop[#drop + 1] = 'building'
	building = false
end
if known[4] == name then
	drop[#drop + 1] = 'previous'
end
local turns = #drop > 0 or (there and not listed(retiring, name))
if #drop > 0 then
	call('HDEL', meta, unpack(drop))
end
for i = 2, #KEYS do
	call('UNLINK', KEYS[i])
end
if there and goes then
	drop = {}
	for i = 1, #FIELDS do
		drop[i] = g .. FIELDS[i]
	end
	if lock and lock == token and not building then
		drop[#drop + 1] = 'lock'
		drop[#drop + 1] = 'lock-until'
	end
	local rest = false
	for word in string.gmatch(retiring or '', '%S+') do
		if word ~= name then
			rest = enlist(rest, word)
		end
	end
	if retiring and not rest then
		drop[#drop + 1] = 'retiring'
	elseif rest then
		change = {'retiring', rest}
	end
	call('HDEL', meta, unpack(drop))
	turns = true
elseif turns then
	change = {'retiring', enlist(retiring, name)}
end
if turns then
	epoch = epoch_after(epoch)
	change[#change + 1] = 'epoch'
	change[#change + 1] = epoch
	call('HSET', meta, unpack(change))
	announce(channel, epoch, known[2])
end
return {1, epoch or '', (goes or not there) and 1 or 0}
