-- Every script begins with this part. KEYS[1] is the record of a name, a hash, and KEYS[2] the floor
-- of its bucket, a hash with three fields:
--   version  of the last write in the bucket: a random word, a hyphen and a number that rises
--   epoch    the highest that was granted in the bucket, in 20 digits
--   time     the highest that was kept in the bucket
-- A time has nine decimals and an epoch 20 digits, so that their texts have the order of their
-- values. Numbers of Lua are doubles and could not hold every epoch, nor nanoseconds since 1970.

-- stamp writes a time: seconds since 1970, not negative, and nanoseconds below 1e9.
local function stamp(seconds, nanos)
  local days = math.floor(seconds / 86400)
  local rest = seconds - days * 86400
  local shifted = days + 719468 -- since 0000-03-01, so that a leap day ends its year
  local era = math.floor(shifted / 146097)
  local day = shifted - era * 146097
  local year = math.floor((day - math.floor(day / 1460) + math.floor(day / 36524) - math.floor(day / 146096)) / 365)
  local ofyear = day - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * ofyear + 2) / 153)
  local ofmonth = ofyear - math.floor((153 * month + 2) / 5) + 1
  year = year + era * 400
  if month < 10 then month = month + 3 else month, year = month - 9, year + 1 end
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%09dZ', year, month, ofmonth,
    math.floor(rest / 3600), math.floor(rest / 60) % 60, rest % 60, nanos)
end

local floor = redis.call('HMGET', KEYS[2], 'version', 'epoch', 'time')
local floor_version, floor_epoch, floor_time = floor[1], floor[2] or string.rep('0', 20), floor[3]
local clock = redis.call('TIME')
local seconds, nanos = tonumber(clock[1]), tonumber(clock[2]) * 1000
local now = stamp(seconds, nanos)

-- number returns the number of a version, and 0 if there is none.
local function number(version) return version and tonumber(string.match(version, '%d+$')) or 0 end

-- next_version returns the version that follows that of the record and that of the floor.
local function next_version(version, word)
  return word .. '-' .. string.format('%.0f', math.max(number(version), number(floor_version)) + 1)
end

-- absence returns the version of a name that has no record. Only the epoch is compared: whoever
-- creates the record raises it, so that the version is another one when the record is gone again.
local function absence() return 'absent-' .. floor_epoch .. '-' .. number(floor_version) end

-- not_before moves now if it is before a time that was told already, and reports whether it was.
local function not_before(time)
  if not time or time <= now then return false end
  now = time
  return true
end
local set_back = not_before(floor_time) -- the clock of the server
