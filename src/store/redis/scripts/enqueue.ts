/**
 * ENQUEUE in one script: judge every call against ids and keys, then write all that was accepted. Calls of several callers
 * travel together; each of them is accepted or refused by itself.
 */
import { script } from "./script.ts";

/** The arguments of one message: id, topic, tenant, key, payload, delay, priority, ordering key, extra, direct try (r or x, and JSON). */
export const MESSAGE_ARGS = 10;

/** After the usual three: for each call its number of messages, `all` or `each`, and the messages. */
export const ENQUEUE = script(
  "enqueue",
  "grows",
  `local W = ${MESSAGE_ARGS}
fits('HLEN', P .. 'accepted')
local orderings, ids, scopes, fresh, results = {}, {}, {}, {}, {}
local function ordering_of(topic)
  if orderings[topic] == nil then orderings[topic] = call('HGET', P .. 't:' .. topic, 'ordering') end
  return orderings[topic]
end
local function payload_of(id, mine) return mine[id] or ids[id] or call('HGET', P .. 'm:' .. id, 'p') end
local function judge(i, mine, mine_scopes, indexes)
  local id, topic, tenant, key, payload = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
  local known = payload_of(id, mine)
  if known then return (known == payload and 'a' or 'c') .. id end
  if key ~= '' then
    local scope = topic .. '\\0' .. tenant .. '\\0' .. key
    local holder = mine_scopes[scope] or scopes[scope] or call('HGET', P .. 'dedupe', scope)
    local first = holder and payload_of(holder, mine)
    if first then return (first == payload and 'd' or 'c') .. holder end
    mine_scopes[scope] = id
  end
  mine[id] = payload
  indexes[#indexes + 1] = i
  return 'a' .. id
end
local at = 4
while ARGV[at] do
  local each, from = ARGV[at + 1] == 'each', at + 2
  at = from + tonumber(ARGV[at]) * W
  local unknown
  for i = from, at - 1, W do
    if not unknown and not ordering_of(ARGV[i + 1]) then unknown = ARGV[i + 1] end
  end
  if unknown then
    results[#results + 1] = 't' .. unknown
  else
    local mine, mine_scopes, indexes, refused = {}, {}, {}, false
    for i = from, at - 1, W do
      local result = judge(i, mine, mine_scopes, indexes)
      results[#results + 1] = result
      refused = refused or string.sub(result, 1, 1) == 'c'
    end
    if each or not refused then
      for id, payload in pairs(mine) do ids[id] = payload end
      for scope, id in pairs(mine_scopes) do scopes[scope] = id end
      for _, i in ipairs(indexes) do fresh[#fresh + 1] = i end
    end
  end
end
-- Nothing has been written so far; from here on nothing is refused.
local lanes, seen, unlisted, heads, numbers, keys = {}, {}, {}, {}, {}, {}
for n, i in ipairs(fresh) do
  local topic, okey = ARGV[i + 1], ARGV[i + 7]
  local ordered = okey ~= '' and orderings[topic] ~= 'none'
  local lane = lane_of(topic, ARGV[i + 2], ARGV[i + 6], '0', ordered)
  -- Refused for good in its direct try: a dead letter from the start.
  local state = string.sub(ARGV[i + 9], 1, 1) == 'x' and 'o' or 'p'
  if zset(P .. 'l:' .. lane) == 0 then unlisted[lane] = fits('SCARD', P .. 'lanes') end
  zset(P .. 's:' .. state .. ':' .. topic)
  if ordered then fits_order(lane, okey) end
  if ARGV[i + 3] ~= '' then fits('HLEN', P .. 'dedupe') end
  fresh[n] = { i, lane, ordered and okey, state }
  if state == 'p' and not seen[lane] then seen[lane] = true lanes[#lanes + 1] = lane end
end
for _, one in ipairs(fresh) do
  local i, lane, okey, state = one[1], one[2], one[3], one[4]
  local id, topic, tenant, key = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local due = math.floor(now + tonumber(ARGV[i + 5]))
  local fields = { 'tp', topic, 'p', ARGV[i + 4], 'c', now, 'st', state, 'du', due }
  local function field(name, value) fields[#fields + 1] = name fields[#fields + 1] = value end
  if tenant ~= '' then field('te', tenant) end
  if key ~= '' then
    field('ke', key)
    keys[#keys + 1] = topic .. '\\0' .. tenant .. '\\0' .. key
    keys[#keys + 1] = id
  end
  if okey then field('ok', okey) elseif ARGV[i + 6] ~= '0' then field('pr', ARGV[i + 6]) end
  if ARGV[i + 8] ~= '' then field('f', ARGV[i + 8]) end
  if ARGV[i + 9] ~= '' then
    field('dt', '1') field('hn', '1') field('lf', '1')
    local outcome = state == 'p' and 'retry|0|' .. now .. '||' .. due or 'reject|0|' .. now .. '||'
    field('h1', '0|' .. outcome .. '|' .. string.sub(ARGV[i + 9], 2))
  end
  if state == 'o' then field('di', now) end
  call('HSET', P .. 'm:' .. id, unpack(fields))
  add(P .. 's:' .. state .. ':' .. topic, 0, id)
  numbers[topic] = (numbers[topic] or 0) + 1
  if state == 'o' then
    -- It waits nowhere.
  elseif okey then
    add(P .. 'o:' .. lane .. okey, 0, id)
    heads[#heads + 1] = { lane, okey }
  else
    add(P .. 'l:' .. lane, due, id)
  end
end
write_sets()
many('HSET', P .. 'dedupe', keys)
for topic, number in pairs(numbers) do call('HINCRBY', P .. 'accepted', topic, number) end
for lane in pairs(unlisted) do list_lane(lane) end
for _, head in ipairs(heads) do rehead(head[1], head[2]) end
tell_lanes(lanes)
return { results, lanes }
`,
);
