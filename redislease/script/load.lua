-- KEYS[2] is the floor of the bucket of the name, a hash with three fields:
--   version  of the last record in the bucket that was written by a swap
--   epoch    the highest that was granted in the bucket
--   time     when an absence was shown last, where replicas must acknowledge that
local floor = redis.call('HMGET', KEYS[2], 'version', 'epoch')
local floor_version, floor_epoch = floor[1], floor[2] or string.rep('0', 20)

-- number returns the number of a version, and 0 if there is none.
local function number(version) return version and tonumber(string.match(version, '%d+$')) or 0 end

-- not_before moves now if it is before a time that was told already: the clock of the server was set
-- back, or another server took its place.
local function not_before(time)
  if time and time > now then now = time end
end

-- show returns all that a load shows. keep says when the time that it tells is kept: 'always',
-- 'over' if the record is over by then, or 'never'. A name without a record has an epoch that no
-- record had that is forgotten: one that was granted in the bucket, or the time in microseconds by
-- which every record was granted that may be forgotten by now. The step is how long a record lasts
-- at least, in microseconds. Of the version of an absence only the epoch is compared: whoever creates
-- the record raises it, so that the version is another one when the record is gone again. Of a hash
-- with far more fields than a record, some are shown: that is enough to see that it is not a record, and
-- unpack cannot show them all.
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
  not_before(time)
  if keep == 'always' or keep == 'over' and ends ~= '' and ends <= now and time < ends then
    redis.call('HSET', KEYS[1], 'time', now)
  end
  return {0, now, '', '', unpack(fields, 1, math.min(#fields, 100))}
end
