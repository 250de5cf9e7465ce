-- SPDX-License-Identifier: BSD-2-Clause
-- Put before every script by scripts/embed-lua: what they share. A missing value
-- is false; text is compared as text; numbers stay below 2^53.
local call, KEYS, ARGV = redis.call, KEYS, ARGV
local ZERO_TAG = string.rep('\0', 8)

local function number(s)
	local n = tonumber(s)
	if n and n >= 0 and n < 9007199254740992 then
		return n
	end
	return 0
end

local function text(n)
	return string.format('%.0f', n)
end

-- Microseconds since 1970. Never used to measure: frozen within a script.
local function clock()
	local t = call('TIME')
	return t[1] * 1000000 + t[2]
end

-- A value never used as an epoch before, whatever was flushed or restored.
local function epoch_after(epoch)
	return text(math.max(number(epoch) + 1, clock()))
end

local function announce(channel, epoch, seq)
	call('PUBLISH', channel, struct.pack('>BBI8I8I4', 1, 2, number(epoch),
	    number(seq), 0))
end

-- The 8 bytes at offset; shorter where the shard is missing, short or no string.
local function tag_at(key, offset)
	local tag = redis.pcall('GETRANGE', key, offset, offset + 7)
	if type(tag) == 'table' then
		if string.find(tag.err, 'WRONGTYPE', 1, true) then
			return ''
		end
		tag = call('GETRANGE', key, offset, offset + 7)
	end
	return tag
end

-- Lists of names are words with one space between.
local function listed(list, name)
	for word in string.gmatch(list or '', '%S+') do
		if word == name then
			return true
		end
	end
	return false
end

local function enlist(list, name)
	if not list or list == '' then
		return name
	end
	return listed(list, name) and list or list .. ' ' .. name
end

local function holds(meta, token)
	return token ~= '' and call('HGET', meta, 'lock') == token
end

local function lease_end(lease)
	return text(clock() + number(lease) * 1000)
end
