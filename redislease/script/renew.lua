-- ARGV has these arguments:
--   1     the version that was committed last
--   2     the next version
--   3, 4  the duration, in seconds and in nanoseconds below 1e9
--   5     how long the record is kept from now, in milliseconds
--   6, 7  the day of the last commit and its date
--   8-11  the id, the epoch, the owner and the duration of the lease
-- The script compares the old "until" with the same time from which it counts the new "until".
--
-- A record with another version is renewed too, if only its end differs: an earlier renewal was carried out, and its
-- answer was lost. The renewals that time out while the server is slow are repeated, and each would otherwise cost a
-- load and a swap, which would keep the server slow.
local record = redis.call('HMGET', KEYS[1], 'version', 'until', 'time')
local ends, last = record[2], record[3]
if not ends or now >= ends or last and now < last then return false end
local version, answer = ARGV[2], now
if record[1] ~= ARGV[1] then
  local same, number = redis.call('HMGET', KEYS[1], 'state', 'id', 'epoch', 'owner', 'duration'), string.match(record[1] or '', '%d+$')
  if same[1] ~= 'leased' or same[2] ~= ARGV[8] or same[3] ~= ARGV[9] or same[4] ~= ARGV[10] or same[5] ~= ARGV[11] then return false end
  if not number or redis.call('HLEN', KEYS[1]) ~= 8 then return false end
  version = string.gsub(version, '%d+$', number + 1)
  answer = {1, now, version}
end
local over = nanos + ARGV[4]
local carry = math.floor(over / 1e9)
redis.call('HSET', KEYS[1], 'version', version, 'time', now, 'until', stamp(seconds + ARGV[3] + carry, over - carry * 1e9))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return answer
