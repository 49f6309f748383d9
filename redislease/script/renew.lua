-- ARGV: the version that was committed last, the next version, the duration in seconds and in
-- nanoseconds below 1e9, for how many milliseconds the record lasts from now, and the day of the last
-- commit with its date. The time at which the until begins is the one that is compared.
local record = redis.call('HMGET', KEYS[1], 'version', 'until', 'time')
local ends, last = record[2], record[3]
if record[1] ~= ARGV[1] or not ends or now >= ends or last and now < last then return false end
local over = nanos + ARGV[4]
local carry = math.floor(over / 1e9)
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'time', now, 'until', stamp(seconds + ARGV[3] + carry, over - carry * 1e9))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return now
