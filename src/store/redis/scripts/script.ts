/**
 * The Lua that all scripts of the store begin with. Every key that a script writes is read first, so that a key of the wrong type is
 * found before the first write: Redis does not take back what a failed script has done.
 */
import { luaScript, type Script, type ScriptKind } from "../lua.ts";

/** What a script answers when the data is not the data that its caller knows: nothing was done. */
export const LOST_DATA = "LOSTDATA";

export function script(name: string, kind: ScriptKind, body: string): Script {
  let text = body;
  for (const [names, lua] of [...PIECES].reverse()) if (names.test(text)) text = `${lua}${text}`;
  return luaScript(name, kind, `${BEGIN}${text}`);
}

/**
 * P: the prefix of every key. now: the caller's moment, or the server's clock; `stamp` is its text, because Redis writes a number
 * slowly. me: who is asking, for wake hints; after these 16 characters the mark that the data had when we last looked: another one, or
 * none, means other data, and then nothing is done at all (see epoch.ts). ID: where the id begins in the key of a message.
 * Lanes are named `u<digit>:<priority>:<topic>:<tenant>`, ordered ones `o:0:<topic>:<tenant>`; the digit is the suspicion, or 4 for what
 * failed before and is no suspect. It stands in the field `su` of a message, whose lane is made from it.
 * What never changes about a message is one text, its head: topic, tenant, priority, ordering key, key and extra with a NUL between
 * them, which no text of a message may hold. A message with an order has its place in it, sq, counted as they were accepted; without
 * one it was accepted by the version before, and its place is 0: before all others, by its id.
 */
const BEGIN = `local call, sub, match, ID = redis.call, string.sub, string.match, #ARGV[1] + 3
local P, now, me = ARGV[1], tonumber(ARGV[2]), sub(ARGV[3], 1, 16)
if #ARGV[3] > 16 and call('HGET', P .. 'meta', 'born') ~= sub(ARGV[3], 17) then
  return redis.error_reply('${LOST_DATA} this is not the data that was here before')
end
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local stamp = string.format('%.0f', now)
`;

/** What scripts may call, by the names that they use; each may use those before it. Making a function costs time in every run, so a script has only its own. */
const PIECES: readonly (readonly [names: RegExp, lua: string])[] = [
  [
    /\b(many)\(/,
    `-- A command with many arguments, in pieces that fit Lua's stack.
local function many(command, key, list)
  if #list <= 2000 then
    if #list > 0 then call(command, key, unpack(list)) end
    return
  end
  for from = 1, #list, 2000 do
    call(command, key, unpack(list, from, math.min(from + 1999, #list)))
  end
end
`,
  ],
  [
    /\b(read_many)\(/,
    `-- The answers of HMGET for any number of fields.
local function read_many(key, fields)
  if #fields <= 2000 then return call('HMGET', key, unpack(fields)) end
  local values = {}
  for from = 1, #fields, 2000 do
    local to = math.min(from + 1999, #fields)
    local piece = call('HMGET', key, unpack(fields, from, to))
    for n = from, to do values[n] = piece[n - from + 1] end
  end
  return values
end
`,
  ],
  [
    /\b(fits)\(/,
    `-- Reads a key that will be written, once: a wrong type is an error here, before the first write.
local checked = {}
local function fits(command, key)
  local size = checked[key]
  if not size then
    size = call(command, key)
    checked[key] = size
  end
  return size
end
`,
  ],
  [
    /\b(zset)\(/,
    `local function zset(key) return fits('ZCARD', key) end
`,
  ],
  [
    /\b(lane_of)\(/,
    `local function lane_of(topic, tenant, priority, suspicion, ordered)
  if ordered then return 'o:0:' .. topic .. ':' .. tenant end
  return 'u' .. (suspicion or '0') .. ':' .. priority .. ':' .. topic .. ':' .. tenant
end
`,
  ],
  [
    /\b(topic_of)\(/,
    `local function topic_of(lane) return match(lane, '^[^:]*:[^:]*:([^:]*):') end
`,
  ],
  [
    /\b(head_of)\(/,
    `-- Topic, tenant, priority, ordering key (nil: none) and key.
local function head_of(head)
  local topic, tenant, priority, okey, key = match(head, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z')
  return topic, tenant, priority, okey ~= '' and okey or nil, key
end
`,
  ],
  [
    /\b(add|remove|write_sets)\(/,
    `-- Additions and removals of sorted sets, gathered so that each set is written once.
local added, removed = {}, {}
local function add(key, score, member)
  local list = added[key]
  if not list then list = {} added[key] = list end
  local size = #list
  list[size + 1] = score
  list[size + 2] = member
end
local function remove(key, member)
  local list = removed[key]
  if not list then list = {} removed[key] = list end
  list[#list + 1] = member
end
local function write_sets()
  for key, list in pairs(removed) do many('ZREM', key, list) end
  for key, list in pairs(added) do many('ZADD', key, list) end
  added, removed = {}, {}
end
`,
  ],
  [
    /\b(list_lane)\(/,
    `local function list_lane(lane)
  if call('EXISTS', P .. 'l:' .. lane) == 1 then
    call('SADD', P .. 'lanes', lane)
  else
    call('SREM', P .. 'lanes', lane)
  end
end
`,
  ],
  [
    /\b(fits_order)\(/,
    `-- Reads what rehead() will write.
local function fits_order(lane, okey)
  fits('SCARD', P .. 'lanes')
  zset(P .. 'l:' .. lane)
  zset(P .. 'o:' .. lane .. okey)
  fits('HLEN', P .. 'k:' .. lane)
  fits('HLEN', P .. 'meta')
end
`,
  ],
  [
    /\b(place_of)\(/,
    `local function place_of(id) return call('HGET', P .. 'm:' .. id, 'sq') or '0' end
`,
  ],
  [
    /\b(is_late|place_late|rehead)\(/,
    `-- Whether a process of the version before accepted it after others that have a place: its place 0 would put it before them. What was
-- claimed before is rightly in front: only a head is ever claimed.
local function is_late(line, id)
  local m = call('HMGET', P .. 'm:' .. id, 'sq', 'n', 'c')
  if m[1] or m[2] then return false end
  local first = call('ZRANGEBYSCORE', line, '(0', '+inf', 'LIMIT', 0, 1)[1]
  return first and tonumber(m[3] or 0) > tonumber(call('HGET', P .. 'm:' .. first, 'c') or 0)
end
-- Gives those their place: the end, as it is now.
local function place_late(line)
  if call('ZCOUNT', line, 0, 0) == 0 then return end
  local late = {}
  for _, id in ipairs(call('ZREVRANGEBYSCORE', line, 0, 0, 'LIMIT', 0, 100)) do
    if is_late(line, id) then table.insert(late, 1, id) end
  end
  for _, id in ipairs(late) do
    local place = call('HINCRBY', P .. 'meta', 'order', 1)
    call('HSET', P .. 'm:' .. id, 'sq', place)
    call('ZADD', line, place, id)
  end
end
`,
  ],
  [
    /\b(rehead)\(/,
    `-- Puts the head of an ordering key into its lane, or takes it out. The key's state is f<id> in flight, b<id> blocked by a dead
-- head, h<id> the head that is or was in the lane.
local function rehead(lane, okey)
  local state = call('HGET', P .. 'k:' .. lane, okey)
  local kind = state and sub(state, 1, 1)
  if kind == 'f' or kind == 'b' then return list_lane(lane) end
  place_late(P .. 'o:' .. lane .. okey)
  local first = call('ZRANGE', P .. 'o:' .. lane .. okey, 0, 0)[1]
  local before = state and sub(state, 2)
  if before and before ~= first then call('ZREM', P .. 'l:' .. lane, before) end
  if first then
    local due = call('HMGET', P .. 'm:' .. first, 'du', 'c', 'he')
    if due[3] then call('ZREM', P .. 'l:' .. lane, first) else call('ZADD', P .. 'l:' .. lane, due[1] or due[2] or stamp, first) end
    call('HSET', P .. 'k:' .. lane, okey, 'h' .. first)
  elseif state then
    call('HDEL', P .. 'k:' .. lane, okey)
  end
  list_lane(lane)
end
`,
  ],
  [
    /\b(tell)\(/,
    `-- A hint that is lost does no harm, so it must never break what was written before it.
local function tell(hint)
  if call('EXISTS', P .. 'waiters') == 1 then redis.pcall('PUBLISH', P .. 'wake', me .. ' ' .. hint) end
end
`,
  ],
  [
    /\b(tell_lanes)\(/,
    `local function tell_lanes(lanes)
  if #lanes > 0 then tell(#lanes == 1 and lanes[1] or '') end
end
`,
  ],
  [
    /\b(quarantine)\(/,
    `-- What cannot be read is quarantined, where people can find it, instead of blocking all others.
local function quarantine(id) call('ZADD', P .. 'quarantine', stamp, id) end
`,
  ],
];
