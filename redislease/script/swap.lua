-- ARGV: the version that was loaded, the time of the load, the end that the record must not have
-- come to or '', the random word of the next version, how a conflict is shown (two), what the epoch
-- of the floor is raised to, 'PEXPIRE', 'PEXPIREAT' or 'PERSIST' and its milliseconds, the channel
-- to be signalled or '', the name, and the fields.
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
redis.call('HSET', KEYS[1], 'version', swapped, 'time', now, unpack(ARGV, 12))
if ARGV[8] == 'PERSIST' then
  redis.call('PERSIST', KEYS[1])
else
  redis.call(ARGV[8], KEYS[1], ARGV[9])
end
if floor_epoch < ARGV[7] then floor_epoch = ARGV[7] end
redis.call('HSET', KEYS[2], 'version', swapped, 'epoch', floor_epoch)
if ARGV[10] ~= '' then redis.call('PUBLISH', ARGV[10], ARGV[11]) end
return {1, now, swapped}
