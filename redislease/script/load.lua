-- show returns all that a load shows. keep says when the time that it tells is kept: 'always',
-- 'over' if the record is over by then, or 'never'. A name without a record has an epoch that no
-- record had that is forgotten: one that was granted in the bucket, or the time in microseconds by
-- which every record was granted that may be forgotten by now. The step is how long a record lasts
-- at least, in microseconds.
local function show(keep, step)
  local fields = redis.call('HGETALL', KEYS[1])
  local write = keep == 'always'
  if keep == 'over' then
    for i = 1, #fields, 2 do
      if fields[i] == 'until' and fields[i + 1] ~= '' and fields[i + 1] <= now then
        write = not floor_time or floor_time < fields[i + 1]
      end
    end
  end
  if write then redis.call('HSET', KEYS[2], 'time', now) end
  local epoch = floor_epoch
  if #fields == 0 then
    step = tonumber(step)
    local base = string.format('%020.0f', math.floor((seconds * 1e6 + nanos / 1000) / step) * step)
    if base > epoch then epoch = base end
  end
  return {0, now, absence(), epoch, unpack(fields)}
end
