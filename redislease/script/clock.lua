-- Every script begins with this part. KEYS[1] is the key of a record. A record is a hash. It has the
-- fields that record.go lists, and two more fields:
--   version  a random word, a hyphen, and a number that rises with each write
--   time     the time of the last write, or of the last load that stored its time
-- Each time has nine decimals and each epoch has 20 digits, so the scripts can compare them as
-- strings. A number in Lua is a double. A double cannot store every epoch exactly, and cannot store
-- nanoseconds since 1970.

-- stamp formats a time. The argument seconds is counted from 1970 and is not negative. The argument
-- nanos is below 1e9. stamp computes the date of a day only once. It stores the date in the variable
-- date, and the day of this date in the variable dated, as a number of days since 1970. A script that
-- already knows a date sets both variables.
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
