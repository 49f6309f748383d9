-- ARGV has these arguments:
--   1     the version that was committed last
--   2     the next version
--   3, 4  the duration, in seconds and in nanoseconds below 1e9
--   5     how long the record is kept from now, in milliseconds
--   6, 7  the day of the last commit and its date
-- The script compares the old "until" with the same time from which it counts the new "until".
local record = redis.call('HMGET', KEYS[1], 'version', 'until', 'time')
local ends, last = record[2], record[3]
if record[1] ~= ARGV[1] or not ends or now >= ends or last and now < last then return false end
local over = nanos + ARGV[4]
local carry = math.floor(over / 1e9)
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'time', now, 'until', stamp(seconds + ARGV[3] + carry, over - carry * 1e9))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return now
