#!lua name=lease
-- This library guards data in Redis from a shell or in any language. Load it once, which a replica receives too:
--
--   redis-cli -x FUNCTION LOAD REPLACE <mark.lua
--
-- The function raises the mark of a resource to the token of a holder, and then runs a command in the same step. If
-- the token is older than the mark, or is no token, for example because a variable was not set, the reply is an error,
-- and the command is not run.
--
--   FCALL lease_advance_mark 1 MARK TOKEN
--   FCALL lease_advance_mark 2 MARK KEY TOKEN COMMAND [ARGUMENT ...]
--
-- The first form is for a new holder that reads before it writes. The command gets the keys after the mark, and then
-- its arguments. The marks are those of redislease.Mark.

local function is_token(text)
  return #text == 20 and string.match(text, '^0%d+$') and text > string.rep('0', 20) and text <= '09223372036854775807'
end

local function advance(keys, args)
  local mark, token = keys[1], args[1]
  if not mark or mark == '' then return redis.error_reply('ERR the mark has no key') end
  if not token or not is_token(token) then
    return redis.error_reply("BADTOKEN '" .. (token or '') .. "' is not a fencing token of 20 digits")
  end
  local seen = redis.call('GET', mark)
  if seen and token < seen then
    if not is_token(seen) then return redis.error_reply('BADMARK ' .. mark .. ' is not a fencing token; set it to the newest token of the lease') end
    return redis.error_reply('STALETOKEN ' .. seen)
  end
  if token ~= seen then redis.call('SET', mark, token) end
  if not args[2] then return redis.status_reply('OK') end
  local command = {args[2]}
  for i = 2, #keys do table.insert(command, keys[i]) end
  for i = 3, #args do table.insert(command, args[i]) end
  return redis.call(unpack(command))
end

redis.register_function('lease_advance_mark', advance)
