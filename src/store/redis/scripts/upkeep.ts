/**
 * PRUNE and LEAD: retention of what is settled and past its time, and nothing else (I2); leadership that saves work and never
 * provides safety (I9). CHECK is refused when a write would be.
 */
import { script } from "./script.ts";

/**
 * After the usual three: how long to keep, how many at most, how much longer dead letters that ended; then name, owner and term of the
 * leadership that must hold, or nothing. Answers with how many were looked at, how many went and how many of these were dead letters; -1: the leadership has ended.
 */
export const PRUNE = script(
  "prune",
  "settles",
  `if ARGV[7] ~= '' then
  local l = call('HMGET', P .. 'leader:' .. ARGV[7], 'owner', 'term', 'until')
  if l[1] ~= ARGV[8] or l[2] ~= ARGV[9] or (tonumber(l[3]) or 0) <= now then return { -1, 0, 0 } end
end
zset(P .. 'settled') zset(P .. 'ended') fits('HLEN', P .. 'dedupe') fits('HLEN', P .. 'pruned')
local kept, longer, looked = tonumber(ARGV[4]), tonumber(ARGV[6]), 0
-- Those that ended and stay longer than the others wait in a set of their own, or they would stand before what goes.
local ids = call('ZRANGEBYSCORE', P .. 'ended', '-inf', now - kept - longer, 'LIMIT', 0, ARGV[5])
local waited = #ids
if #ids < tonumber(ARGV[5]) then
  local more = call('ZRANGEBYSCORE', P .. 'settled', '-inf', now - kept, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[5]) - #ids)
  for n = 1, #more, 2 do
    local state = longer > 0 and redis.pcall('HGET', P .. 'm:' .. more[n], 'st')
    if (state == 'r' or state == 'x') and tonumber(more[n + 1]) > now - kept - longer then
      remove(P .. 'settled', more[n])
      add(P .. 'ended', more[n + 1], more[n])
      looked = looked + 1
    else
      ids[#ids + 1] = more[n]
    end
  end
end
local gone, dead = {}, 0
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
  call('ZREM', P .. (n <= waited and 'ended' or 'settled'), id)
  -- Only the settled: delivered, resolved, discarded.
  if m.topic and (m[1] == 'd' or m[1] == 'r' or m[1] == 'x') then
    call('UNLINK', P .. 'm:' .. id)
    if m[1] ~= 'd' then dead = dead + 1 end
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
return { looked + #ids, #ids, dead }
`,
);

/** After the usual three: how long to keep, how much longer dead letters that ended, where to go on, how many. Answers as PRUNE, of what it would do. */
export const PRUNE_LOOK = script(
  "look what to prune",
  "settles",
  `local kept, longer, from, goes = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), 0
if from == 0 then goes = call('ZCOUNT', P .. 'ended', '-inf', now - kept - longer) end
local more = call('ZRANGEBYSCORE', P .. 'settled', '-inf', now - kept, 'WITHSCORES', 'LIMIT', from, ARGV[7])
for n = 1, #more, 2 do
  local state = longer > 0 and redis.pcall('HGET', P .. 'm:' .. more[n], 'st')
  local stays = (state == 'r' or state == 'x') and tonumber(more[n + 1]) > now - kept - longer
  if not stays then goes = goes + 1 end
end
return { #more / 2, goes }
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
