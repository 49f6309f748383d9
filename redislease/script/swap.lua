-- This part follows clock.lua, which defines now, and load.lua, which defines floor_version,
-- floor_epoch, number, not_before and show. ARGV has these arguments:
--   ARGV[1]  the version that was loaded
--   ARGV[2]  the time of the load
--   ARGV[3]  the time before which the swap must happen, or '' if there is none
--   ARGV[4]  the random word of the next version
--   ARGV[5]  the argument keep of show after a conflict
--   ARGV[6]  the argument step of show after a conflict
--   ARGV[7]  the lowest epoch that the floor must have after the swap
--   ARGV[8]  the command that sets how long the record is kept: PEXPIRE, PEXPIREAT or PERSIST
--   ARGV[9]  the argument of PEXPIRE or PEXPIREAT, in milliseconds
--   ARGV[10] the channel of the signal, or '' if there is no signal
--   ARGV[11] the name of the lease
--   ARGV[12] the name of the first field of the new record. Its value and the other fields follow.
--
-- If a command fails, the server keeps the earlier writes of the script. This part writes the floor
-- before the record, so no failed command leaves the floor below the epoch of the record.
local record = redis.call('HMGET', KEYS[1], 'version', 'time')
local version, same = record[1], nil
not_before(record[2])
not_before(ARGV[2])
if version then
  same = version == ARGV[1]
else
  same = redis.call('EXISTS', KEYS[1]) == 0 and string.match(ARGV[1], '^absent%-(%d+)%-') == floor_epoch
end
if not same or ARGV[3] ~= '' and now >= ARGV[3] then return show(ARGV[5], ARGV[6]) end
local swapped = ARGV[4] .. '-' .. math.max(number(version), number(floor_version)) + 1
if floor_epoch < ARGV[7] then floor_epoch = ARGV[7] end
redis.call('HSET', KEYS[2], 'version', swapped, 'epoch', floor_epoch)
redis.call('HSET', KEYS[1], 'version', swapped, 'time', now, unpack(ARGV, 12))
if ARGV[8] == 'PERSIST' then
  redis.call('PERSIST', KEYS[1])
else
  redis.call(ARGV[8], KEYS[1], ARGV[9])
end
if ARGV[10] ~= '' then redis.call('PUBLISH', ARGV[10], ARGV[11]) end
return {1, now, swapped}
