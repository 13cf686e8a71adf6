/**
 * The scripts of the stream doors: each ends an entry, moves one, removes a consumer or publishes, in one step that no other
 * client can interrupt. Blocking reads are not here: Redis refuses them inside scripts.
 */
import { luaScript } from "../lua.ts";

/**
 * KEYS stream. ARGV group ids…. Acknowledges and deletes (DA-7); where another group reads the same stream the entry is only
 * acknowledged, because deleting it would take it from that group. → how many this call ended
 */
export const SETTLE = luaScript(
  "stream settle",
  "settles",
  `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local alone = #redis.call('XINFO', 'GROUPS', KEYS[1]) == 1
local ended = 0
for i = 2, #ARGV do
  ended = ended + redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
  if alone then redis.call('XDEL', KEYS[1], ARGV[i]) end
end
return ended
`,
);

/**
 * KEYS stream deadStream. ARGV group id code reason. Copies the entry as it is, with where it came from and why, then ends it
 * (DA-8, DA-9). → the new id; '' when another consumer has ended it already
 */
export const QUARANTINE = luaScript(
  "stream quarantine",
  "settles",
  `
local stream, dead = KEYS[1], KEYS[2]
local group, id = ARGV[1], ARGV[2]
if redis.call('EXISTS', stream) == 0 then return '' end
local alone = #redis.call('XINFO', 'GROUPS', stream) == 1
local pending = redis.call('XPENDING', stream, group, id, id, 1)[1]
local entry = redis.call('XRANGE', stream, id, id)[1]
if not pending then return '' end
if redis.call('TYPE', dead).ok ~= 'none' then redis.call('XLEN', dead) end
local copy = ''
if entry then
  local args = { 'XADD', dead, '*', 'dead_code', ARGV[3], 'dead_reason', ARGV[4], 'dead_stream', stream, 'dead_group', group,
    'dead_id', id, 'dead_deliveries', pending[4] }
  for _, part in ipairs(entry[2]) do args[#args + 1] = part end
  copy = redis.call(unpack(args))
end
redis.call('XACK', stream, group, id)
if alone then redis.call('XDEL', stream, id) end
return copy
`,
);

/**
 * KEYS stream. ARGV group consumer idleMs. Removes the consumer if it has been silent that long and holds nothing: removing one
 * that holds entries would lose them, and the look and the removal must not be apart (DA-12). → 1 when it was removed
 */
export const REMOVE_CONSUMER = luaScript(
  "stream remove consumer",
  "settles",
  `
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local is = {}
  for i = 1, #flat, 2 do is[flat[i]] = flat[i + 1] end
  if is.name == ARGV[2] and is.pending == 0 and is.idle >= tonumber(ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    return 1
  end
end
return 0
`,
);

/**
 * KEYS stream. ARGV group consumer idleMs parked max. Of a consumer that has been silent that long every entry that it holds goes to `parked`,
 * as idle and as often delivered as it was; then it is removed. → how many were moved, and 1 when it was removed
 */
export const PARK_CONSUMER = luaScript(
  "stream park consumer",
  "settles",
  `
local stream, group, name, parked = KEYS[1], ARGV[1], ARGV[2], ARGV[4]
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group)) do
  local is = {}
  for i = 1, #flat, 2 do is[flat[i]] = flat[i + 1] end
  if is.name == name and is.idle >= tonumber(ARGV[3]) then
    local held = redis.call('XPENDING', stream, group, '-', '+', ARGV[5], name)
    for _, e in ipairs(held) do
      redis.call('XCLAIM', stream, group, parked, 0, e[1], 'IDLE', e[3], 'RETRYCOUNT', e[4], 'JUSTID')
    end
    if #redis.call('XPENDING', stream, group, '-', '+', 1, name) > 0 then return { #held, 0 } end
    redis.call('XGROUP', 'DELCONSUMER', stream, group, name)
    return { #held, 1 }
  end
end
return { 0, 0 }
`,
);

/**
 * KEYS stream marks. ARGV mark, then names and values. Publishes once per mark: the mark and the entry are one write, so a
 * repeat after a lost answer adds nothing. No MAXLEN: an entry that was not read is never cut off (DA-1). → the entry's id or ''
 */
export const PUBLISH = luaScript(
  "stream publish",
  "grows",
  `
local stream, marks = KEYS[1], KEYS[2]
redis.call('ZCARD', marks)
if redis.call('TYPE', stream).ok ~= 'none' then redis.call('XLEN', stream) end
local t = redis.call('TIME')
if redis.call('ZADD', marks, 'NX', t[1], ARGV[1]) == 0 then return '' end
return redis.call('XADD', stream, '*', unpack(ARGV, 2))
`,
);

/** KEYS marks. ARGV marks…. → which of them are there, and they are seen: their age starts anew. */
export const SEE_MARKS = luaScript(
  "stream see marks",
  "settles",
  `
local t = redis.call('TIME')
local out = {}
for i = 1, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], 'XX', t[1], ARGV[i])
    out[i] = 1
  else
    out[i] = 0
  end
end
return out
`,
);

/** KEYS marks. ARGV keptSeconds. Marks of what has long stopped being a dead letter go. */
export const FORGET_MARKS = luaScript(
  "stream forget marks",
  "settles",
  `
local t = redis.call('TIME')
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', tonumber(t[1]) - tonumber(ARGV[1])))
`,
);
