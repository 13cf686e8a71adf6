/**
 * CLAIM in one script: the due messages of the named lanes leave them, are counted as attempts and enter one lease. What is
 * read and what is taken are one step, so no worker acts on a message that another one has (DF-6).
 */
import { LIMITS } from "../../../message/limits.ts";
import { script } from "./script.ts";

/**
 * How many values of the answer belong to one message: id, lane (its number, or its name), attempt, head, payload, and what most do not
 * have: base, direct try and the digit of one with an order, whose lane has none.
 */
export const CLAIMED_WIDTH = 6;

/** What is added to a lease's name for the suspects with an order that were claimed beside others. */
export const APART = "s";

/**
 * Owner, lease time, bytes, lease, token; what follows names lanes or messages. An ordered lane has suspects of killing workers between
 * others: one group of them in a claim, eight or a single one, under a lease of its own, so that what is lost with it says who it was (I6).
 */
const BEGIN = `local owner, lease_ms, bytes, lease, token = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
fits('SCARD', P .. 'lanes') zset(P .. 'leased')
local taken, late, size, full, infos, group, grouped = {}, {}, 0, false, {}, nil, 0
local function info_of(lane)
  local info = infos[lane]
  if not info then
    local topic = topic_of(lane)
    info = { line = P .. 'l:' .. lane, pending = P .. 's:p:' .. topic, flying = P .. 's:i:' .. topic, ordered = sub(lane, 1, 1) == 'o' }
    zset(info.line) zset(info.pending) zset(info.flying)
    infos[lane] = info
  end
  return info
end
local function take(id, lane, m)
  local info = info_of(lane)
  m.id, m.lane, m.info = id, lane, info
  if info.ordered then
    local _, _, _, okey = head_of(m[2])
    fits_order(lane, okey)
    m.okey = okey
    -- The version before put it in front of others.
    if is_late(P .. 'o:' .. lane .. okey, id) then
      late[#late + 1] = m
      return
    end
    local su = call('HGET', P .. 'm:' .. id, 'su')
    if su == '1' or su == '2' then
      if group and (group ~= su or su == '2' or grouped == ${LIMITS.suspectGroupMax}) then return end
      m.su = su
    end
    m.says = (su == '1' or su == '2' or su == '4') and su
  end
  size = size + #m[3]
  -- At least one, or a message larger than the budget would never be claimed.
  if bytes and size > bytes and #taken > 0 then
    full = true
    return
  end
  if m.su then group, grouped = m.su, grouped + 1 end
  taken[#taken + 1] = m
end
`;

const END = `for _, m in ipairs(late) do rehead(m.lane, m.okey) end
if #taken == 0 then return {} end
local reply, open, apart, last = {}, { 't', token, 'o', owner }, { 't', token, 'o', owner }, 0
for _, m in ipairs(taken) do
  local id, info, attempt, list, name = m.id, m.info, '1', open, lease
  if m.su then list, name = apart, lease .. '${APART}' end
  if m[4] and m[4] ~= '0' then attempt = string.format('%.0f', m[4] + 1) end
  call('HSET', P .. 'm:' .. id, 'st', 'i', 'n', attempt, 'le', name)
  if not m.cut then remove(info.line, id) end
  remove(info.pending, id)
  add(info.flying, '0', id)
  if m.okey then
    call('ZREM', P .. 'o:' .. m.lane .. m.okey, id)
    call('HSET', P .. 'k:' .. m.lane, m.okey, 'f' .. id)
  end
  local size = #list
  list[size + 1], list[size + 2] = id, m.lane
  reply[last + 1], reply[last + 2], reply[last + 3], reply[last + 4], reply[last + 5] = id, m.number or m.lane, attempt, m[2], m[3]
  reply[last + 6] = (m[5] or m[6] or m.says) and (m[5] or '0') .. (m[6] and '|1|' or '|0|') .. (m.says or '0') or ''
  last = last + 6
end
write_sets()
for name, list in pairs({ [lease] = open, [lease .. '${APART}'] = apart }) do
  if #list > 4 then
    many('HSET', P .. 'e:' .. name, list)
    call('ZADD', P .. 'leased', string.format('%.0f', now + lease_ms), name)
  end
end
for lane in pairs(infos) do list_lane(lane) end
return reply
`;

/** How far an ordered lane is looked at for heads that never failed. */
const UNTRIED_SEEN = 1_000;

/** What a claim looks at that begins elsewhere than with the oldest: the newest, or what stands at a part of what is due. */
const ELSEWHERE = `local function elsewhere(line, limit, from, ordered)
  local seen, ids = ordered and ${UNTRIED_SEEN} or limit, {}
  local function look(found)
    for _, id in ipairs(found) do
      if #ids == limit then return end
      -- Messages that failed, and suspects, are due later than others: at the end of an ordered lane they would hide all others.
      local su = ordered and redis.pcall('HGET', P .. 'm:' .. id, 'su')
      if not (su == '1' or su == '2' or su == '4') then ids[#ids + 1] = id end
    end
  end
  if from == 'newest' then
    look(call('ZREVRANGEBYSCORE', line, stamp, '-inf', 'LIMIT', 0, seen))
    return ids
  end
  local due = call('ZCOUNT', line, '-inf', stamp)
  if due == 0 then return ids end
  local first = math.max(0, math.min(math.floor(tonumber(from) * due), due - limit))
  look(call('ZRANGE', line, first, math.min(first + seen, due) - 1))
  if ordered and first > 0 then look(call('ZRANGE', line, math.max(0, first - seen), first - 1)) end
  return ids
end
`;

/** Lane, limit and where it begins, for each lane. */
export const CLAIM = script(
  "claim",
  "settles",
  `${BEGIN}${ELSEWHERE}local lost, cuts = {}, {}
for i = 9, #ARGV, 3 do
  local lane = ARGV[i]
  local line, ordered = P .. 'l:' .. lane, sub(lane, 1, 1) == 'o'
  local limit, from, ids, before = tonumber(ARGV[i + 1]), ARGV[i + 2], {}, #taken
  if from ~= 'oldest' and not full then ids = elsewhere(line, limit, from, ordered) end
  local front = from == 'oldest' or (ordered and from ~= 'newest' and #ids == 0)
  if front and not full then ids = call('ZRANGEBYSCORE', line, '-inf', stamp, 'LIMIT', 0, limit) end
  for _, id in ipairs(ids) do
    local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h', 'p', 'n', 'ba', 'dt')
    if m.err or m[1] ~= 'p' or not (m[2] and m[3] and tonumber(m[4] or '0')) then
      zset(P .. 'quarantine')
      lost[#lost + 1] = { line, id, lane }
    elseif not full then
      m.number = (i - 9) / 3
      take(id, lane, m)
    end
  end
  -- All that was seen was taken: it leaves from the front in one cut.
  if #ids > 0 and #taken == before + #ids and front then
    for n = before + 1, #taken do taken[n].cut = true end
    cuts[line] = #ids
  end
end
-- A lane names what is not there, or what is not waiting: never silently dropped (DF-1, DF-31).
for _, one in ipairs(lost) do
  call('ZREM', one[1], one[2])
  quarantine(one[2])
  list_lane(one[3])
end
for line, count in pairs(cuts) do call('ZREMRANGEBYRANK', line, 0, count - 1) end
${END}`,
);

/** 1: only what is due; then the ids. What is not pending, is held or has an order to keep is left out. */
export const CLAIM_NAMED = script(
  "claim by id",
  "settles",
  `${BEGIN}local seen = {}
for i = 10, #ARGV do
  local id = ARGV[i]
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h', 'p', 'n', 'ba', 'dt', 'su', 'he', 'du')
  local early = ARGV[9] == '1' and not m.err and tonumber(m[9] or '0') > now
  if not (m.err or seen[id] or full or early) and m[1] == 'p' and m[2] and m[3] and not m[8] then
    seen[id] = true
    local topic, tenant, priority, okey = head_of(m[2])
    if not okey then take(id, lane_of(topic, tenant, priority, m[7], false), m) end
  end
end
${END}`,
);
