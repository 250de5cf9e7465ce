-- SPDX-License-Identifier: BSD-2-Clause
-- Reads epoch, seq and some tags in one moment, takes TTLs away, keeps this
-- bloomgate's field among the peers and removes ended ones. PERSIST comes first:
-- a full Redis takes it, and then the rest.
local meta, peers, channel, peer, value = KEYS[1], KEYS[2], ARGV[1], ARGV[2],
    ARGV[3]
local known = call('HMGET', meta, 'epoch', 'seq', 'run-id', 'retiring',
    'lock-until')
local epoch, seq = known[1], known[2] or '0'
local exists = epoch or call('EXISTS', meta) == 1
local now = clock()
-- Which history this data is of: another one after a demotion and a promotion,
-- which leave connections and the process's run id as they were.
local info = redis.pcall('INFO', 'replication')
local history = type(info) == 'string' and
    string.match(info, 'master_replid:(%x+)') or ''

-- The shards are those of the caller's meta: under another they mean nothing, and
-- a new epoch would hide from the caller that this meta is an older one.
local lost, lost_names, at = {}, {}, 5
local judged = exists and epoch == ARGV[5]
for i = 3, #KEYS do
	local name, tag, offset = ARGV[at + 1], ARGV[at + 2],
	    tonumber(ARGV[at + 3])
	at = at + 3
	if judged and not lost[name] and not listed(known[4], name) then
		local state = call('HGET', meta, 'g:' .. name .. ':state')
		if state == 'sealed' or state == 'building' then
			local found = tag_at(KEYS[i], offset)
			if found ~= tag and (state == 'sealed' or
			    found ~= ZERO_TAG) then
				lost[name] = true
				lost_names[#lost_names + 1] = name
			end
		end
	end
end
local ended = {}
if peer ~= '' then
	local all = call('HGETALL', peers)
	for i = 1, #all, 2 do
		local holds_until = string.match(all[i + 1], '^%d+')
		if all[i] ~= peer and #ended < 200 and
		    number(holds_until) < now then
			ended[#ended + 1] = all[i]
		end
	end
end

local persisted = 0
for i = 1, #KEYS do
	persisted = persisted + call('PERSIST', KEYS[i])
end
local change = {}
if exists and (not epoch or #lost_names > 0) then
	epoch = epoch_after(epoch)
	change = {'epoch', epoch}
	for i = 1, #lost_names do
		change[#change + 1] = 'g:' .. lost_names[i] .. ':state'
		change[#change + 1] = 'lost'
	end
	call('HSET', meta, unpack(change))
end
if #ended > 0 then
	call('HDEL', peers, unpack(ended))
end
if value == '-' then
	call('HDEL', peers, peer)
elseif string.sub(value, 1, 1) == '+' then
	local rest = string.sub(value, 2)
	if rest == '' then
		rest = epoch or ''
	end
	call('HSET', peers, peer, text(now + number(ARGV[4]) * 1000) .. ' ' ..
	    rest)
elseif value ~= '' then
	call('HSET', peers, peer, value)
end
if #change > 0 then
	announce(channel, epoch, seq)
end
return {1, epoch or '', seq, text(now), known[3] or '', #lost_names, persisted,
    known[5] or '', history}
