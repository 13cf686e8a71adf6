/**
 * ENQUEUE of what most callers send at one moment: messages of one topic, each a call of its own, without order and with nothing
 * unusual. It decides and writes as the script for all does, without the tables that batches and orders need.
 */
import { script } from "./script.ts";

/**
 * KEYS: `dedupe`, `lanes`, `accepted`, `waiters`, the topic, its pending messages, the lanes, the messages. After the usual three arguments:
 * - the topic and the number of lanes; for each lane the scope of its keys, its priority and its number of messages;
 * - for each message, lane by lane, its key and its payload. No two of them have the same id, or the same key in one scope.
 *
 * Answers with what became of the messages, as ENQUEUE does, lane by lane.
 */
export const ENQUEUE_PLAIN = script(
  "enqueue",
  "grows",
  `local KEYS, ARGV, topic, G = KEYS, ARGV, ARGV[4], tonumber(ARGV[5])
local head, tail, N, results = 6 + G, 4 + 3 * G, #KEYS - 6 - G, {}
local dedupe, pending = KEYS[1], KEYS[6]
local function answer(other)
  for m = 1, N do results[m] = results[m] or other end
  return results
end
if not call('HGET', KEYS[5], 'ordering') then return answer('t' .. topic) end

-- Every key that is written is read before: all lanes, all ids in one look, all keys in one.
local unlisted, scopes, keyed, n, m = {}, {}, {}, 0, 0
for g = 1, G do
  if call('ZCARD', KEYS[6 + g]) == 0 then unlisted[#unlisted + 1] = sub(KEYS[6 + g], ID) end
  local scope = ARGV[3 + 3 * g]
  for _ = 1, ARGV[5 + 3 * g] do
    m = m + 1
    local key = ARGV[tail + 2 * m]
    if key ~= '' then
      n = n + 1
      scopes[n], keyed[n] = scope .. key, m
    end
  end
end
call('ZCARD', pending)
call('LLEN', P .. 'intake')
if #unlisted > 0 then call('SCARD', KEYS[2]) end
if call('EXISTS', unpack(KEYS, head + 1)) > 0 then
  for m = 1, N do
    local before = call('HGET', KEYS[head + m], 'p')
    if before then results[m] = before == ARGV[tail + 2 * m + 1] and 'a' or 'c' .. sub(KEYS[head + m], ID) end
  end
end
local holders = n > 0 and call('HMGET', dedupe, unpack(scopes))
for k = 1, n do
  local m = keyed[k]
  local held = holders[k] and not results[m] and call('HGET', P .. 'm:' .. holders[k], 'p')
  if held then results[m] = (held == ARGV[tail + 2 * m + 1] and 'd' or 'c') .. holders[k] end
end
local plain, fresh = next(results) == nil, N
for _ in pairs(results) do fresh = fresh - 1 end
if fresh == 0 then return results end

-- The first write is also the look at its key.
call('HINCRBY', KEYS[3], topic, fresh)
local ids, all, last, intake = {}, {}, 0, {}
m = 0
for g = 1, G do
  local line, size, came, start = {}, 0, { ARGV[3 + 3 * g] .. stamp }, ARGV[3 + 3 * g] .. ARGV[4 + 3 * g] .. '\\0\\0'
  for _ = 1, ARGV[5 + 3 * g] do
    m = m + 1
    if not results[m] then
      local message, at = KEYS[head + m], tail + 2 * m
      local id = sub(message, ID)
      call('HSET', message, 'h', start .. ARGV[at] .. '\\0', 'p', ARGV[at + 1], 'c', stamp, 'st', 'p')
      ids[m], line[size + 1], line[size + 2], all[last + 1], all[last + 2] = id, stamp, id, '0', id
      size, last = size + 2, last + 2
      came[#came + 1] = id
    end
  end
  if size > 0 then
    call('ZADD', KEYS[6 + g], unpack(line))
    intake[#intake + 1] = table.concat(came, '\\0')
  end
end
call('RPUSH', P .. 'intake', unpack(intake))
call('ZADD', pending, unpack(all))
local keys, size = {}, 0
for k = 1, n do
  local id = ids[keyed[k]]
  if id then
    keys[size + 1], keys[size + 2] = scopes[k], id
    size = size + 2
  end
end
if size > 0 then call('HSET', dedupe, unpack(keys)) end
if #unlisted > 0 then call('SADD', KEYS[2], unpack(unlisted)) end
tell(G == 1 and sub(KEYS[7], ID) or '')
return plain and results or answer('a')
`,
);
