-- SPDX-License-Identifier: BSD-2-Clause
-- Gives the lock back where TOKEN holds it and nothing is building.
local meta, token = KEYS[1], ARGV[1]
if holds(meta, token) and call('HEXISTS', meta, 'building') == 0 then
	call('HDEL', meta, 'lock', 'lock-until')
end
return {1}
