-- KEYS[2] is the key of the floor of the bucket. A floor is a hash with three fields:
--   version  the version of the last swap in the bucket
--   epoch    the highest epoch of the bucket
--   time     the time of the last load of a missing record, if the loads store their time
local floor = redis.call('HMGET', KEYS[2], 'version', 'epoch')
local floor_version, floor_epoch = floor[1], floor[2] or string.rep('0', 20)

-- number returns the number at the end of a version, or 0 if there is no version.
local function number(version) return version and tonumber(string.match(version, '%d+$')) or 0 end

-- not_before raises now to the given time, if now is earlier. That happens after the clock of the
-- server was set backward, or after another server was promoted.
local function not_before(time)
  if time and time > now then now = time end
end

-- show returns the reply of a load: the time, that of the clock if it is earlier, and the record. The argument keep decides whether show
-- stores the time:
--   always  show stores the time
--   over    show stores the time only if the lease of the record has ended
--   never   show does not store the time
--
-- For a name without a record, show returns the higher of two epochs. One is the epoch of the floor.
-- The other is the current time in microseconds, rounded down to a multiple of step. The argument
-- step is the minimum time that a record is kept, in microseconds. So the epoch is not below the
-- epoch of any record of the name that has expired or was deleted.
--
-- A swap that creates a record compares only one part of the version of the missing record: the
-- epoch. The swap raises the epoch of the floor, so the version of a missing record never recurs.
--
-- If the hash has more than 50 fields, show returns only 50 of them, because unpack cannot return
-- any number of values. A record has fewer fields, so the caller still sees that the hash is not a
-- valid record.
local function show(keep, step)
  local fields = redis.call('HGETALL', KEYS[1])
  if #fields == 0 then
    if keep == 'always' then redis.call('HSET', KEYS[2], 'time', now) end
    local epoch = string.format('%020.0f', math.floor((seconds * 1e6 + nanos / 1000) / step) * step)
    if epoch < floor_epoch then epoch = floor_epoch end
    return {0, now, 'absent-' .. floor_epoch .. '-' .. number(floor_version), epoch}
  end
  local ends, time = '', ''
  for i = 1, #fields, 2 do
    if fields[i] == 'until' then ends = fields[i + 1] end
    if fields[i] == 'time' then time = fields[i + 1] end
  end
  local raw = now
  not_before(time)
  if raw == now then raw = '' end
  if keep == 'always' or keep == 'over' and ends ~= '' and ends <= now and time < ends then
    redis.call('HSET', KEYS[1], 'time', now)
  end
  return {0, now, raw, '', unpack(fields, 1, math.min(#fields, 100))}
end
