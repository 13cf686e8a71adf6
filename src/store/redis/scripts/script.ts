/**
 * What a script is, and the Lua that all of them begin with. The first line makes Redis judge a script before it runs (memory,
 * role, disk errors), so that a refusal means that nothing was written; and every key that is written is read first, so that a
 * key of the wrong type is found before the first write: Redis does not take back what a failed script has done.
 */
import { hash } from "node:crypto";

export interface Script {
  readonly name: string;
  readonly text: string;
  readonly sha: string;
  /** Whether it changes something, so that a lost answer leaves its outcome unknown. */
  readonly writes: boolean;
}

/**
 * `grows`: refused when Redis is full. `settles`: runs all the same, because what it does lets the store drain. `reads`: changes nothing.
 */
export function script(name: string, kind: "grows" | "settles" | "reads", body: string): Script {
  const flags = { grows: "", settles: " flags=allow-oom", reads: " flags=no-writes" }[kind];
  const text = `#!lua${flags}\n${PRELUDE}${body}`;
  return { name, text, sha: hash("sha1", text, "hex"), writes: kind !== "reads" };
}

/**
 * P: the prefix of every key. now: the caller's moment, or the server's clock. me: who is asking, for wake hints.
 * Lanes are named `u<suspicion>:<priority>:<topic>:<tenant>`, ordered ones `o:0:<topic>:<tenant>`.
 */
const PRELUDE = `local P, now, me = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local call = redis.call
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
-- A command with many arguments, in pieces that fit Lua's stack.
local function many(command, key, list)
  for from = 1, #list, 2000 do
    call(command, key, unpack(list, from, math.min(from + 1999, #list)))
  end
end
-- Reads a key that will be written, once: a wrong type is an error here, before the first write.
local checked = {}
local function fits(command, key)
  local size = checked[key]
  if not size then
    size = call(command, key)
    checked[key] = size
  end
  return size
end
local function zset(key) return fits('ZCARD', key) end
local function lane_of(topic, tenant, priority, suspicion, ordered)
  if ordered then return 'o:0:' .. topic .. ':' .. (tenant or '') end
  return 'u' .. (suspicion or '0') .. ':' .. (priority or '0') .. ':' .. topic .. ':' .. (tenant or '')
end
-- Additions and removals of sorted sets, gathered so that each set is written once.
local added, removed = {}, {}
local function add(key, score, member)
  local list = added[key]
  if not list then list = {} added[key] = list end
  list[#list + 1] = score
  list[#list + 1] = member
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
local function list_lane(lane)
  if call('EXISTS', P .. 'l:' .. lane) == 1 then
    call('SADD', P .. 'lanes', lane)
  else
    call('SREM', P .. 'lanes', lane)
  end
end
-- Reads what rehead() will write.
local function fits_order(lane, okey)
  zset(P .. 'l:' .. lane)
  zset(P .. 'o:' .. lane .. okey)
  fits('HLEN', P .. 'k:' .. lane)
end
-- Puts the head of an ordering key into its lane, or takes it out. The key's state is f<id> in flight, b<id> blocked by a dead
-- head, h<id> the head that is or was in the lane.
local function rehead(lane, okey)
  local state = call('HGET', P .. 'k:' .. lane, okey)
  local kind = state and string.sub(state, 1, 1)
  if kind == 'f' or kind == 'b' then return list_lane(lane) end
  local first = call('ZRANGE', P .. 'o:' .. lane .. okey, 0, 0)[1]
  local before = state and string.sub(state, 2)
  if before and before ~= first then call('ZREM', P .. 'l:' .. lane, before) end
  if first then
    local due = call('HMGET', P .. 'm:' .. first, 'du', 'he')
    if due[2] then call('ZREM', P .. 'l:' .. lane, first) else call('ZADD', P .. 'l:' .. lane, due[1], first) end
    call('HSET', P .. 'k:' .. lane, okey, 'h' .. first)
  elseif state then
    call('HDEL', P .. 'k:' .. lane, okey)
  end
  list_lane(lane)
end
-- A hint that is lost does no harm, so it must never break what was written before it.
local function tell(hint)
  if call('EXISTS', P .. 'waiters') == 1 then redis.pcall('PUBLISH', P .. 'wake', me .. ' ' .. hint) end
end
local function tell_lanes(lanes)
  if #lanes > 0 then tell(#lanes == 1 and lanes[1] or '') end
end
-- What cannot be read is set aside where people can find it, instead of standing in the way of all others.
local function quarantine(id) call('ZADD', P .. 'quarantine', now, id) end
`;
