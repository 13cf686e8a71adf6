/**
 * MOVE in Redis: messages read as they stand, and written as they stood elsewhere, each call one script.
 */
import { script } from "./script.ts";

/**
 * KEYS: `settled`, the messages. After the usual three: payload bytes at most. Answers for as many of them as fit, at least one, with id,
 * all fields, when it was settled, and what the table of ordering keys says of its key; nothing for one that is not there.
 */
export const READ_MOVABLE = script(
  "read what is moved",
  "reads",
  `local bytes, reply = 0, {}
for n = 2, #KEYS do
  local m = redis.pcall('HMGET', KEYS[n], 'h', 'st')
  local size = not m.err and m[1] and call('HSTRLEN', KEYS[n], 'p') or 0
  bytes = bytes + size
  if n > 2 and bytes > tonumber(ARGV[4]) then break end
  local id = sub(KEYS[n], ID)
  if m.err or not (m[1] and m[2]) then
    reply[#reply + 1] = { id }
  else
    local topic, tenant, _, okey = head_of(m[1])
    local key = okey and call('HGET', P .. 'k:' .. lane_of(topic, tenant, '0', '0', okey), okey) or ''
    reply[#reply + 1] = { id, call('HGETALL', KEYS[n]), call('ZSCORE', P .. 'settled', id) or '', key or '' }
  end
end
return reply
`,
);

/**
 * KEYS: `dedupe`, `lanes`, `accepted`, `settled`, `meta`, the messages. After the usual three, for each message: topic, tenant, priority,
 * ordering key, key, extra, state, digit of its lane, due (empty: held), place, 1 when it blocks its order, when it was settled (or empty),
 * payload, how many fields, and these, each name before its value.
 * Answers with what became of each (`p` put, `h` here, `d` and `c` with the id that has its key), or `t` and a topic that is not there.
 */
export const PUT_MOVABLE = script(
  "put what is moved",
  "grows",
  `local at, n, all, results, taken, orderings = 4, 5, {}, {}, {}, {}
fits('HLEN', P .. 'dedupe') fits('SCARD', P .. 'lanes') fits('HLEN', P .. 'accepted') zset(P .. 'settled') fits('HLEN', P .. 'meta') fits('LLEN', P .. 'intake')
local function judge(m)
  local before = call('HGET', m.key, 'p')
  if before then return before == m.payload and 'h' .. m.id or 'c' .. m.id end
  if m.scope then
    local holder = taken[m.scope] or call('HGET', P .. 'dedupe', m.scope)
    local held = holder and call('HGET', P .. 'm:' .. holder, 'p')
    if held then return (held == m.payload and 'd' or 'c') .. holder end
    taken[m.scope] = m.id
  end
  return 'p' .. m.id
end
while at <= #ARGV do
  n = n + 1
  local topic, tenant, priority, okey, key, extra = unpack(ARGV, at, at + 5)
  local state, digit, due, place, blocks, settled, payload = unpack(ARGV, at + 6, at + 12)
  if orderings[topic] == nil then orderings[topic] = call('HGET', P .. 't:' .. topic, 'ordering') end
  if not orderings[topic] then return { 't' .. topic } end
  if okey == '' or orderings[topic] == 'none' then okey = nil else priority = '0' end
  local scope, count = topic .. '\\0' .. tenant .. '\\0', tonumber(ARGV[at + 13])
  local m = { key = KEYS[n], id = sub(KEYS[n], ID), topic = topic, okey = okey, state = state, due = due, place = place, payload = payload,
    blocks = okey and blocks == '1', settled = settled, scope = key ~= '' and scope .. key, from = at + 14, to = at + 13 + 2 * count,
    lane = lane_of(topic, tenant, priority, digit, okey), head = scope .. priority .. '\\0' .. (okey or '') .. '\\0' .. key .. '\\0' .. extra }
  results[#results + 1] = judge(m)
  if sub(results[#results], 1, 1) == 'p' then
    all[#all + 1] = m
    zset(P .. 's:' .. state .. ':' .. topic)
    if okey then fits_order(m.lane, okey) elseif state == 'p' then zset(P .. 'l:' .. m.lane) end
  end
  at = m.to + 1
end
local heads, lanes, told = {}, {}, {}
for _, m in ipairs(all) do
  call('HINCRBY', P .. 'accepted', m.topic, 1)
  call('HSET', m.key, 'h', m.head, 'p', m.payload, 'st', m.state)
  for from = m.from, m.to, 2000 do call('HSET', m.key, unpack(ARGV, from, math.min(from + 1999, m.to))) end
  local topic, tenant = head_of(m.head)
  call('RPUSH', P .. 'intake', topic .. '\\0' .. tenant .. '\\0' .. (call('HGET', m.key, 'c') or stamp) .. '\\0' .. m.id)
  if m.scope then call('HSET', P .. 'dedupe', m.scope, m.id) end
  add(P .. 's:' .. m.state .. ':' .. m.topic, '0', m.id)
  if m.settled ~= '' then add(P .. 'settled', m.settled, m.id) end
  if m.okey then
    call('HSET', m.key, 'sq', m.place)
    -- What is accepted from now on comes after it.
    call('HSETNX', P .. 'meta', 'order', stamp)
    if tonumber(call('HGET', P .. 'meta', 'order')) < tonumber(m.place) then call('HSET', P .. 'meta', 'order', m.place) end
    local state = call('HGET', P .. 'k:' .. m.lane, m.okey)
    if m.blocks and (not state or sub(state, 1, 1) == 'h') then
      if state then call('ZREM', P .. 'l:' .. m.lane, sub(state, 2)) end
      call('HSET', P .. 'k:' .. m.lane, m.okey, 'b' .. m.id)
    end
    if m.state == 'p' then add(P .. 'o:' .. m.lane .. m.okey, m.place, m.id) end
    heads[#heads + 1] = m
  elseif m.state == 'p' and m.due ~= '' then
    add(P .. 'l:' .. m.lane, m.due, m.id)
    lanes[m.lane] = true
  end
end
write_sets()
for _, m in ipairs(heads) do rehead(m.lane, m.okey) lanes[m.lane] = true end
for lane in pairs(lanes) do
  list_lane(lane)
  told[#told + 1] = lane
end
tell_lanes(told)
return results
`,
);
