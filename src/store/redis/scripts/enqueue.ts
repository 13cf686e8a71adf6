/**
 * ENQUEUE in one script: check every call against ids and keys, then write all that was accepted. Calls of several callers
 * travel together; each of them is accepted or refused by itself.
 */
import { script } from "./script.ts";

/**
 * KEYS: `dedupe`, `lanes`, `accepted`, `waiters`, the messages, the topics. After the usual three arguments:
 * - the calls, each as `a` (all or none) or `e` (each by itself) and its number of messages; empty when every message is one call;
 * - how many groups there are, and for each group topic, tenant, priority and ordering key;
 * - for each message its group, its key, what is unusual about it, and its payload.
 * Unusual are a delay, a direct try (r or x, and JSON) and extra fields, a line each; all other messages have an empty text there.
 *
 * Answers with what became of the messages, and the lanes that have new work. `a`: accepted; `d` and `c`: the id that has the key;
 * `t`, once for the whole call: a topic that is not there. No results: all were accepted.
 */
export const ENQUEUE = script(
  "enqueue",
  "grows",
  `local G = tonumber(ARGV[5])
local first, N = 6 + 4 * G, (#ARGV - 5 - 4 * G) / 4
local orderings, groups = {}, {}
for g = 1, G do
  local at = 2 + 4 * g
  local topic, tenant, priority, okey = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if orderings[topic] == nil then orderings[topic] = call('HGET', P .. 't:' .. topic, 'ordering') end
  if okey == '' or orderings[topic] == 'none' then okey = nil else priority = '0' end
  local scope, lane = topic .. '\\0' .. tenant .. '\\0', lane_of(topic, tenant, priority, '0', okey)
  groups[tostring(g)] = {
    topic = topic, scope = scope, head = scope .. priority .. '\\0' .. (okey or '') .. '\\0', okey = okey,
    lane = lane, line = P .. 'l:' .. lane, pending = P .. 's:p:' .. topic,
  }
end
-- One look for all ids, and one for all keys: most are new.
local known, scope_of, scopes, holder_of = 0, {}, {}, {}
for from = 5, 4 + N, 2000 do
  known = known + call('EXISTS', unpack(KEYS, from, math.min(from + 1999, 4 + N)))
end
for m = 1, N do
  local at = first + 4 * m - 4
  local key = ARGV[at + 1]
  if key ~= '' then
    local scope = groups[ARGV[at]].scope .. key
    scope_of[m] = scope
    scopes[#scopes + 1] = scope
  end
end
if #scopes > 0 then
  local holders = read_many(P .. 'dedupe', scopes)
  for n = 1, #scopes do
    if holders[n] then holder_of[scopes[n]] = P .. 'm:' .. holders[n] end
  end
end

local payloads, taken, fresh, results, plain = {}, {}, {}, {}, true
-- What becomes of one message; mine and mine_taken are what the call itself has brought so far.
local function judge(m, mine, mine_taken, mine_fresh)
  local message, payload = KEYS[4 + m], ARGV[first + 4 * m - 1]
  local before = mine[message] or payloads[message] or (known > 0 and call('HGET', message, 'p'))
  if before then
    if before == payload then return 'a' end
    return 'c' .. sub(message, ID)
  end
  local scope = scope_of[m]
  if scope then
    local holder = mine_taken[scope] or taken[scope] or holder_of[scope]
    local held = holder and (mine[holder] or payloads[holder] or call('HGET', holder, 'p'))
    if held then return (held == payload and 'd' or 'c') .. sub(holder, ID) end
    mine_taken[scope] = message
  end
  mine[message] = payload
  mine_fresh[#mine_fresh + 1] = m
  return 'a'
end
local function unknown_topic(from, to)
  for m = from, to do
    local topic = groups[ARGV[first + 4 * m - 4]].topic
    if not orderings[topic] then return topic end
  end
end
local function told(result)
  results[#results + 1] = result
  if result ~= 'a' then plain = false end
end
-- All or none: what it brings counts only when nothing of it is refused.
local function judge_all(from, to)
  local mine, mine_taken, mine_fresh, refused = {}, {}, {}, false
  for m = from, to do
    local result = judge(m, mine, mine_taken, mine_fresh)
    told(result)
    refused = refused or sub(result, 1, 1) == 'c'
  end
  if refused then return end
  for message, payload in pairs(mine) do payloads[message] = payload end
  for scope, message in pairs(mine_taken) do taken[scope] = message end
  for _, m in ipairs(mine_fresh) do fresh[#fresh + 1] = m end
end
local function judge_call(from, to, mode)
  local unknown = unknown_topic(from, to)
  if unknown then
    told('t' .. unknown)
  elseif mode == 'a' and to > from then
    judge_all(from, to)
  else
    for m = from, to do told(judge(m, payloads, taken, fresh)) end
  end
end
if ARGV[4] == '' then
  for m = 1, N do judge_call(m, m, 'e') end
else
  local from = 1
  for mode, count in string.gmatch(ARGV[4], '(%a)(%d+)') do
    judge_call(from, from + count - 1, mode)
    from = from + count
  end
end
if plain then results = {} end
if #fresh == 0 then return { results, {} } end

-- Nothing has been written so far; from here on nothing is refused.
local lanes, seen, unlisted, heads, numbers, keys, unusual, ordered, came, intake = {}, {}, {}, {}, {}, {}, {}, 0, {}, {}
fits('LLEN', P .. 'intake')
for _, m in ipairs(fresh) do
  local at = first + 4 * m - 4
  local group, rest = groups[ARGV[at]], ARGV[at + 2]
  numbers[group.topic] = (numbers[group.topic] or 0) + 1
  if group.okey then ordered = ordered + 1 end
  if rest ~= '' then
    local delay, direct, extra = match(rest, '^([^\\n]*)\\n([^\\n]*)\\n(.*)$')
    -- Refused for good in its direct try: a dead letter from the start.
    unusual[m] = { delay = delay, direct = direct, extra = extra, dead = sub(direct, 1, 1) == 'x' }
  end
  if rest ~= '' and unusual[m].dead then
    zset(P .. 's:o:' .. group.topic)
    if group.okey then fits('HLEN', P .. 'meta') end
  elseif not group.used then
    group.used = true
    zset(group.pending)
    if group.okey then
      fits_order(group.lane, group.okey)
      heads[#heads + 1] = group
    elseif zset(group.line) == 0 then
      fits('SCARD', P .. 'lanes')
      unlisted[#unlisted + 1] = group.lane
    end
    if not seen[group.lane] then
      seen[group.lane] = true
      lanes[#lanes + 1] = group.lane
    end
  end
end
-- The fields of a message that is unusual, and what it is: its state and when it is due.
local function write_unusual(message, head, payload, more)
  local state, due = more.dead and 'o' or 'p', string.format('%.0f', math.floor(now + tonumber(more.delay)))
  local fields = { 'h', head .. more.extra, 'p', payload, 'c', stamp, 'st', state, 'du', due }
  local function field(name, value) fields[#fields + 1] = name fields[#fields + 1] = value end
  if more.direct ~= '' then
    field('dt', '1') field('hn', '1') field('lf', '1')
    local outcome = state == 'p' and 'retry|0|' .. stamp .. '||' .. due or 'reject|0|' .. stamp .. '||'
    field('h1', '0|' .. outcome .. '|' .. sub(more.direct, 2))
  end
  if state == 'o' then field('di', stamp) end
  call('HSET', message, unpack(fields))
  return state, due
end
-- The first write is also the look at its key.
for topic, number in pairs(numbers) do call('HINCRBY', P .. 'accepted', topic, number) end
-- What other calls accepted before gets its place first; then ours, in the order of the calls.
for _, group in ipairs(heads) do place_late(P .. 'o:' .. group.lane .. group.okey) end
local place
if ordered > 0 then
  -- It begins at the time: should the counter alone be lost, it goes on above all that it gave.
  call('HSETNX', P .. 'meta', 'order', stamp)
  place = call('HINCRBY', P .. 'meta', 'order', ordered) - ordered
end
for _, m in ipairs(fresh) do
  local at = first + 4 * m - 4
  local group, message = groups[ARGV[at]], KEYS[4 + m]
  local id, head, state, due = sub(message, ID), group.head .. ARGV[at + 1] .. '\\0', 'p', stamp
  if group.okey then place = place + 1 end
  local list = came[group.scope]
  if not list then list = { group.scope .. stamp } came[group.scope] = list end
  list[#list + 1] = id
  if unusual[m] then
    state, due = write_unusual(message, head, ARGV[at + 3], unusual[m])
    if group.okey then call('HSET', message, 'sq', place) end
  elseif group.okey then
    call('HSET', message, 'h', head, 'p', ARGV[at + 3], 'c', stamp, 'st', 'p', 'sq', place)
  else
    call('HSET', message, 'h', head, 'p', ARGV[at + 3], 'c', stamp, 'st', 'p')
  end
  if scope_of[m] then
    keys[#keys + 1] = scope_of[m]
    keys[#keys + 1] = id
  end
  if state == 'o' then
    add(P .. 's:o:' .. group.topic, '0', id)
  else
    add(group.pending, '0', id)
    if group.okey then add(P .. 'o:' .. group.lane .. group.okey, place, id) else add(group.line, due, id) end
  end
end
write_sets()
-- What was accepted, apart from all that becomes of it (I12).
for _, list in pairs(came) do intake[#intake + 1] = table.concat(list, '\\0') end
many('RPUSH', P .. 'intake', intake)
many('HSET', P .. 'dedupe', keys)
many('SADD', P .. 'lanes', unlisted)
for _, group in ipairs(heads) do rehead(group.lane, group.okey) end
tell_lanes(lanes)
return { results, lanes }
`,
);
