-- ARGV: the version that was committed last, the time of that, the random word of the next version,
-- the duration in seconds and in nanoseconds below 1e9, and for how many milliseconds the record
-- lasts from now. The time at which the until begins is the one that is compared.
local record = redis.call('HMGET', KEYS[1], 'version', 'until')
if set_back or not_before(ARGV[2]) or record[1] ~= ARGV[1] or not record[2] or now >= record[2] then
  return {0}
end
local ends = nanos + tonumber(ARGV[5])
local carry = math.floor(ends / 1e9)
local swapped = next_version(record[1], ARGV[3])
redis.call('HSET', KEYS[1], 'version', swapped, 'until', stamp(seconds + tonumber(ARGV[4]) + carry, ends - carry * 1e9))
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('HSET', KEYS[2], 'version', swapped, 'time', now)
return {1, now, swapped}
