-- Every script begins with this part. KEYS[1] is the record of a name, a hash: the fields that
-- record.go lists, and
--   version  of the record: a random word, a hyphen and a number that rises
--   time     the highest that was told with it, as far as anything depends on that
-- A time has nine decimals, and an epoch 20 digits, so that their texts have the order of their
-- values. Numbers of Lua are doubles and could not hold every epoch, nor nanoseconds since 1970.

-- stamp writes a time: seconds since 1970, not negative, and nanoseconds below 1e9. It computes the
-- date of a day once. A script that knows one says so in dated, the days since 1970, and date.
local function stamp(seconds, nanos)
  local days = math.floor(seconds / 86400)
  local rest = seconds - days * 86400
  if days ~= dated then
    local shifted = days + 719468 -- since 0000-03-01, so that a leap day ends its year
    local era = math.floor(shifted / 146097)
    local day = shifted - era * 146097
    local year = math.floor((day - math.floor(day / 1460) + math.floor(day / 36524) - math.floor(day / 146096)) / 365)
    local ofyear = day - (365 * year + math.floor(year / 4) - math.floor(year / 100))
    local month = math.floor((5 * ofyear + 2) / 153)
    local ofmonth = ofyear - math.floor((153 * month + 2) / 5) + 1
    year = year + era * 400
    if month < 10 then month = month + 3 else month, year = month - 9, year + 1 end
    dated, date = days, string.format('%04d-%02d-%02dT', year, month, ofmonth)
  end
  local minutes = math.floor(rest / 60)
  return date .. string.format('%02d:%02d:%02d.%09dZ', minutes / 60, minutes % 60, rest % 60, nanos)
end

local clock = redis.call('TIME')
local seconds, nanos = tonumber(clock[1]), tonumber(clock[2]) * 1000
local now = stamp(seconds, nanos)
