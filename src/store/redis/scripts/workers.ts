/**
 * WORKERS: announce and read, each one script; the next announcement of any worker removes what is past its time or beyond the
 * limit.
 */
import { LIMITS } from "../../../message/limits.ts";
import { WORKER } from "../../../message/worker-note.ts";
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

/** How many leases are looked at for owners that announced nothing. */
const LEASES_SEEN = 200;

/** Owners and notes; an empty note: it is at work or waits for it, and never said anything. */
export const READ_WORKERS = script(
  "read workers",
  "reads",
  `local reply, seen = {}, {}
for _, owner in ipairs(call('ZRANGEBYSCORE', P .. 'workers:until', '(' .. stamp, '+inf')) do
  local note = call('HGET', P .. 'workers', owner)
  if note then reply[#reply + 1] = { owner, note } end
end
local function at_work(owner)
  if not owner or seen[owner] or sub(owner, 1, ${WORKER.length}) ~= '${WORKER}' then return end
  seen[owner] = true
  if #reply < ${2 * LIMITS.workersMax} and call('HEXISTS', P .. 'workers', owner) == 0 then reply[#reply + 1] = { owner, '' } end
end
for _, owner in ipairs(call('HKEYS', P .. 'waiters')) do at_work(owner) end
for _, lease in ipairs(call('ZREVRANGEBYSCORE', P .. 'leased', '+inf', '(' .. stamp, 'LIMIT', 0, ${LEASES_SEEN})) do
  at_work(call('HGET', P .. 'e:' .. lease, 'o'))
end
return reply
`,
);
