/**
 * WORKERS: announce and read, each one script; what is past its time or beyond the limit goes with the next word of anybody.
 */
import { LIMITS } from "../../../message/limits.ts";
import { script } from "./script.ts";

/** Owner, note, how long it is kept. */
export const ANNOUNCE_WORKER = script(
  "announce a worker",
  "settles",
  `local notes, ends = P .. 'workers', P .. 'workers:until'
fits('HLEN', notes)
zset(ends)
local function forget(owners)
  if #owners == 0 then return end
  call('HDEL', notes, unpack(owners))
  call('ZREM', ends, unpack(owners))
end
forget({ ARGV[4] })
forget(call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 1000))
local ttl = tonumber(ARGV[6])
if ttl > 0 then
  call('HSET', notes, ARGV[4], ARGV[5])
  call('ZADD', ends, now + ttl, ARGV[4])
end
local over = call('ZCARD', ends) - ${LIMITS.workersMax}
if over > 0 then forget(call('ZRANGE', ends, 0, math.min(over, 1000) - 1)) end
return 1
`,
);

export const READ_WORKERS = script(
  "read workers",
  "reads",
  `local reply = {}
for _, owner in ipairs(call('ZRANGEBYSCORE', P .. 'workers:until', '(' .. stamp, '+inf')) do
  local note = call('HGET', P .. 'workers', owner)
  if note then reply[#reply + 1] = { owner, note } end
end
return reply
`,
);
