/**
 * ENQUEUE of a single message without order and with nothing unusual, which is what a service that is not busy sends: the same
 * judgement and the same writes as the script for many, without the tables that many need (a third less time on the server).
 */
import { script } from "./script.ts";

/** KEYS: `dedupe`, `lanes`, `accepted`, `waiters`, the message, its topic. After the usual three: topic, tenant, priority, key, payload. Answers as ENQUEUE. */
export const ENQUEUE_ONE = script(
  "enqueue",
  "grows",
  `local dedupe, lanes, message, topic, tenant, key, payload = KEYS[1], KEYS[2], KEYS[5], ARGV[4], ARGV[5], ARGV[7], ARGV[8]
if not call('HGET', KEYS[6], 'ordering') then return { { 't' .. topic }, {} } end
local id, before = sub(message, ID), call('HGET', message, 'p')
if before then return { { before == payload and 'a' or 'c' .. id }, {} } end
local scope = topic .. '\\0' .. tenant .. '\\0'
if key ~= '' then
  local holder = call('HGET', dedupe, scope .. key)
  local held = holder and call('HGET', P .. 'm:' .. holder, 'p')
  if held then return { { (held == payload and 'd' or 'c') .. holder }, {} } end
end
local lane = lane_of(topic, tenant, ARGV[6], '0', false)
local line, pending = P .. 'l:' .. lane, P .. 's:p:' .. topic
local unlisted = call('ZCARD', line) == 0
call('ZCARD', pending)
if unlisted then call('SCARD', lanes) end
-- The first write is also the look at its key.
call('HINCRBY', KEYS[3], topic, 1)
call('HSET', message, 'h', scope .. ARGV[6] .. '\\0\\0' .. key .. '\\0', 'p', payload, 'c', stamp, 'st', 'p')
call('ZADD', pending, '0', id)
call('ZADD', line, stamp, id)
if key ~= '' then call('HSET', dedupe, scope .. key, id) end
if unlisted then call('SADD', lanes, lane) end
tell(lane)
return { {}, { lane } }
`,
);
