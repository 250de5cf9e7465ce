-- SPDX-License-Identifier: BSD-2-Clause
-- Sets the bits of some elements in every live generation. What it takes and
-- answers: script.h. Nothing is written before everything was read.
local meta, channel = KEYS[1], ARGV[2]
local known = call('HMGET', meta, 'epoch', 'seq', 'active', 'retiring')
local epoch, active = known[1], known[3]
local seq = number(known[2])
local exists = epoch or call('EXISTS', meta) == 1

if exists and epoch ~= ARGV[1] then
	local answer, all = {0, 'epoch'}, call('HGETALL', meta)
	for i = 1, #all do
		answer[i + 2] = all[i]
	end
	return answer
end

-- The generations that the caller's shards belong to, and their states.
local at, nshards = 3, tonumber(ARGV[3])
local names, fields, state = {}, {}, {}
for s = 1, nshards do
	local name = ARGV[at + 1 + (s - 1) * 3]
	if state[name] == nil then
		state[name] = false
		names[#names + 1] = name
		fields[#fields + 1] = 'g:' .. name .. ':state'
	end
end
if #names > 200 then
	return redis.error_reply('ERR bloomgate: too many generations')
end
if exists and #names > 0 then
	local states = call('HMGET', meta, unpack(fields))
	for i = 1, #names do
		state[names[i]] = states[i]
	end
end

-- limit[s]: bits of a shard that is in order; false where it gets none.
-- digits[s]: how long its limit is as text.
local limit, digits, serves, lost, lost_names = {}, {}, {}, {}, {}
for s = 1, nshards do
	local name, tag = ARGV[at + 1], ARGV[at + 2]
	local offset = tonumber(ARGV[at + 3])
	local is = state[name]
	at = at + 3
	limit[s] = false
	if not exists or is == 'sealed' or is == 'building' or is == 'lost' then
		local found = tag_at(KEYS[s + 1], offset)
		if found == tag or (found == ZERO_TAG and exists and
		    is ~= 'sealed') then
			limit[s] = offset * 8
			digits[s] = #text(limit[s])
			serves[s] = name == active
		elseif exists and is ~= 'lost' and not lost[name] and
		    not listed(known[4], name) then
			lost[name] = true
			lost_names[#lost_names + 1] = name
		end
	end
end

-- Reads every reference: refs[s] is where in ARGV its positions begin, how many
-- they are and whose, three entries a reference. Short positions are in range.
local elements, new, refs = {}, {}, {}
local used, nelements = {}, tonumber(ARGV[at + 1])
at = at + 1
for e = 1, nelements do
	local nrefs = tonumber(ARGV[at + 2])
	elements[e] = ARGV[at + 1]
	new[e] = 1
	at = at + 2
	for _ = 1, nrefs do
		local s, k = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
		local max = limit[s]
		at = at + 2
		if max then
			local r, long = refs[s], digits[s]
			if k > 50 then
				return redis.error_reply('ERR bloomgate: k')
			end
			for i = at + 1, at + k do
				local p = ARGV[i]
				if #p >= long and tonumber(p) >= max then
					return redis.error_reply('ERR bloomgate: ' ..
					    'position past the shard')
				end
			end
			if not r then
				r = {}
				refs[s] = r
				used[#used + 1] = s
			end
			local n = #r
			r[n + 1], r[n + 2], r[n + 3] = at, k, e
			if serves[s] then
				new[e] = 0
			end
		end
		at = at + k
	end
end

-- One BITFIELD takes at most 50 positions of one shard, four entries each, of
-- which three never change.
local fresh, any, args = {}, false, {}
for i = 1, 200, 4 do
	args[i], args[i + 1], args[i + 2], args[i + 3] = 'SET', 'u1', '', '1'
end

local function set(s, r, from, to, n)
	local old, o = call('BITFIELD', KEYS[s + 1], unpack(args, 1, n)), 0
	for i = from, to, 3 do
		for j = o + 1, o + r[i + 1] do
			if old[j] == 0 then
				any = true
				fresh[r[i + 2]] = true
				if serves[s] then
					new[r[i + 2]] = 1
				end
			end
		end
		o = o + r[i + 1]
	end
end

for u = 1, #used do
	local s = used[u]
	local r, n, from = refs[s], 0, 1
	for i = 1, #r, 3 do
		local start, k = r[i], r[i + 1]
		if n + k * 4 > 200 then
			set(s, r, from, i - 3, n)
			from, n = i, 0
		end
		for j = start + 1, start + k do
			args[n + 3] = ARGV[j]
			n = n + 4
		end
	end
	set(s, r, from, #r - 2, n)
end

-- A message holds at most 64 KiB: 22 bytes of head, then the elements.
local bodies, counts = {}, {}
if any and exists then
	local parts, size = {}, 22
	for e = 1, nelements do
		if fresh[e] then
			if size + 4 + #elements[e] > 65536 and #parts > 0 then
				bodies[#bodies + 1] = table.concat(parts)
				counts[#bodies] = #parts
				parts, size = {}, 22
			end
			parts[#parts + 1] = struct.pack('>I4', #elements[e]) ..
			    elements[e]
			size = size + 4 + #elements[e]
		end
	end
	bodies[#bodies + 1] = table.concat(parts)
	counts[#bodies] = #parts
end

local change = {}
if not exists then
	epoch = epoch_after(ARGV[1])
	change = {'layout', '1', 'epoch', epoch}
elseif #lost_names > 0 then
	epoch = epoch_after(epoch)
	change = {'epoch', epoch}
	for i = 1, #lost_names do
		change[#change + 1] = 'g:' .. lost_names[i] .. ':state'
		change[#change + 1] = 'lost'
	end
end
local changed = #change > 0
if #bodies > 0 then
	change[#change + 1] = 'seq'
	change[#change + 1] = text(seq + #bodies)
end
if #change > 0 then
	call('HSET', meta, unpack(change))
end
for i = 1, #bodies do
	seq = seq + 1
	call('PUBLISH', channel, struct.pack('>BBI8I8I4', 1, 1, number(epoch), seq,
	    counts[i]) .. bodies[i])
end
if changed then
	announce(channel, epoch, seq)
end

local answer = {1, epoch, text(seq)}
for e = 1, nelements do
	answer[e + 3] = new[e]
end
return answer
