#!lua
local P, now, me = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local call, sub, match, ID = redis.call, string.sub, string.match, #ARGV[1] + 3
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local stamp = string.format('%.0f', now)
-- A command with many arguments, in pieces that fit Lua's stack.
local function many(command, key, list)
  if #list <= 2000 then
    if #list > 0 then call(command, key, unpack(list)) end
    return
  end
  for from = 1, #list, 2000 do
    call(command, key, unpack(list, from, math.min(from + 1999, #list)))
  end
end
-- The answers of HMGET for any number of fields.
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
  if ordered then return 'o:0:' .. topic .. ':' .. tenant end
  return 'u' .. (suspicion or '0') .. ':' .. priority .. ':' .. topic .. ':' .. tenant
end
-- Additions and removals of sorted sets, gathered so that each set is written once.
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
local function list_lane(lane)
  if call('EXISTS', P .. 'l:' .. lane) == 1 then
    call('SADD', P .. 'lanes', lane)
  else
    call('SREM', P .. 'lanes', lane)
  end
end
-- Reads what rehead() will write.
local function fits_order(lane, okey)
  fits('SCARD', P .. 'lanes')
  zset(P .. 'l:' .. lane)
  zset(P .. 'o:' .. lane .. okey)
  fits('HLEN', P .. 'k:' .. lane)
end
-- Puts the head of an ordering key into its lane, or takes it out. The key's state is f<id> in flight, b<id> blocked by a dead
-- head, h<id> the head that is or was in the lane.
local function rehead(lane, okey)
  local state = call('HGET', P .. 'k:' .. lane, okey)
  local kind = state and sub(state, 1, 1)
  if kind == 'f' or kind == 'b' then return list_lane(lane) end
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
-- A hint that is lost does no harm, so it must never break what was written before it.
local function tell(hint)
  if call('EXISTS', P .. 'waiters') == 1 then redis.pcall('PUBLISH', P .. 'wake', me .. ' ' .. hint) end
end
local function tell_lanes(lanes)
  if #lanes > 0 then tell(#lanes == 1 and lanes[1] or '') end
end
local G = tonumber(ARGV[5])
local first, N = 6 + 4 * G, (#ARGV - 5 - 4 * G) / 4
local orderings, groups = {}, {}
for g = 1, G do
  local at = 2 + 4 * g
  local topic, tenant, priority, okey = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if orderings[topic] == nil then orderings[topic] = call('HGET', P .. 't:' .. topic, 'ordering') end
  if okey == '' or orderings[topic] == 'none' then okey = nil else priority = '0' end
  local scope, lane = topic .. '\0' .. tenant .. '\0', lane_of(topic, tenant, priority, '0', okey)
  groups[tostring(g)] = {
    topic = topic, scope = scope, head = scope .. priority .. '\0' .. (okey or '') .. '\0', okey = okey,
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
local lanes, seen, unlisted, heads, numbers, keys, unusual = {}, {}, {}, {}, {}, {}, {}
for _, m in ipairs(fresh) do
  local at = first + 4 * m - 4
  local group, rest = groups[ARGV[at]], ARGV[at + 2]
  numbers[group.topic] = (numbers[group.topic] or 0) + 1
  if rest ~= '' then
    local delay, direct, extra = match(rest, '^([^\n]*)\n([^\n]*)\n(.*)$')
    -- Refused for good in its direct try: a dead letter from the start.
    unusual[m] = { delay = delay, direct = direct, extra = extra, dead = sub(direct, 1, 1) == 'x' }
  end
  if rest ~= '' and unusual[m].dead then
    zset(P .. 's:o:' .. group.topic)
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
for _, m in ipairs(fresh) do
  local at = first + 4 * m - 4
  local group, message = groups[ARGV[at]], KEYS[4 + m]
  local id, head, state, due = sub(message, ID), group.head .. ARGV[at + 1] .. '\0', 'p', stamp
  if unusual[m] then
    state, due = write_unusual(message, head, ARGV[at + 3], unusual[m])
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
    if group.okey then add(P .. 'o:' .. group.lane .. group.okey, '0', id) else add(group.line, due, id) end
  end
end
write_sets()
many('HSET', P .. 'dedupe', keys)
many('SADD', P .. 'lanes', unlisted)
for _, group in ipairs(heads) do rehead(group.lane, group.okey) end
tell_lanes(lanes)
return { results, lanes }
