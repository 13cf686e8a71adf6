/**
 * PRUNE and LEAD: retention of what is settled and past its time, and nothing else (I2); leadership that saves work and never
 * provides safety (I9). CHECK is refused when a write would be.
 */
import { script } from "./script.ts";

/** After the usual three: how long to keep, how many at most. */
export const PRUNE = script(
  "prune",
  "settles",
  `zset(P .. 'settled') fits('HLEN', P .. 'dedupe') fits('HLEN', P .. 'pruned')
local ids = call('ZRANGEBYSCORE', P .. 'settled', '-inf', now - tonumber(ARGV[4]), 'LIMIT', 0, ARGV[5])
local gone = {}
for n, id in ipairs(ids) do
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h')
  gone[n] = m
  if m[1] and m[2] then
    m.topic, m.tenant, m.priority, m.okey, m.key = head_of(m[2])
    zset(P .. 's:' .. m[1] .. ':' .. m.topic)
  end
end
for n, id in ipairs(ids) do
  local m = gone[n]
  call('ZREM', P .. 'settled', id)
  -- Only the settled: delivered, resolved, discarded.
  if m.topic and (m[1] == 'd' or m[1] == 'r' or m[1] == 'x') then
    call('UNLINK', P .. 'm:' .. id)
    remove(P .. 's:' .. m[1] .. ':' .. m.topic, id)
    -- The key protects as long as its message lives.
    if m.key ~= '' then
      local scope = m.topic .. '\\0' .. m.tenant .. '\\0' .. m.key
      if call('HGET', P .. 'dedupe', scope) == id then call('HDEL', P .. 'dedupe', scope) end
    end
    call('HINCRBY', P .. 'pruned', m.topic, 1)
  end
end
write_sets()
return #ids
`,
);

/** After the usual three: name, owner, how long. */
export const LEAD = script(
  "lead",
  "settles",
  `local key, owner, ttl = P .. 'leader:' .. ARGV[4], ARGV[5], tonumber(ARGV[6])
local m = call('HMGET', key, 'owner', 'term', 'until')
local holder, term, until_ms = m[1] or '', tonumber(m[2]) or 0, tonumber(m[3]) or 0
if ttl > 0 and (holder == owner or until_ms <= now) then
  if holder ~= owner then term = term + 1 end
  holder = owner
  call('HSET', key, 'owner', owner, 'term', term, 'until', math.floor(now + ttl))
elseif ttl <= 0 and holder == owner then
  holder = ''
  call('HSET', key, 'owner', '', 'until', 0)
end
return { (ttl > 0 and holder == owner) and 1 or 0, term, holder }
`,
);

/**
 * After the usual three: a mark, and 1 where a person knows what was lost before this data. Answers with the mark of this data, another one
 * than before meaning that the data is another, too; and whether a person knows.
 */
export const CHECK = script(
  "check",
  "grows",
  `call('HSETNX', P .. 'meta', 'born', ARGV[4])
local born = call('HGET', P .. 'meta', 'born')
if ARGV[5] == '1' then call('HSET', P .. 'meta', 'known', born) end
return { born, call('HGET', P .. 'meta', 'known') == born and 1 or 0 }
`,
);
