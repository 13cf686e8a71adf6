/**
 * WALK: a range of ids, each in the one moment that a script is: what is open against the sets that say where a message is, both ways. What has ended is booked.
 */
import { script } from "../scripts/script.ts";
import { ACCOUNTS } from "./accounts-lua.ts";

/** A payload is read whole; a range ends early where they are large. */
const BYTES_MAX = 4_194_304;

/** Where the range ends, and what is in it: `open` by id, `where` by id the letters of the sets that it is in, and `topics` by id. */
const RANGE = `local after, upto, size, letters = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local sets, to, open, where, topics, ids = {}, upto, {}, {}, {}, {}
for _, topic in ipairs(call('HKEYS', P .. 'accepted')) do
  for state in string.gmatch(letters, '.') do
    local key = P .. 's:' .. state .. ':' .. topic
    if zset(key) > 0 then sets[#sets + 1] = { key, state, topic } end
  end
end
local function ends(key, from, each)
  local nth = call('ZRANGEBYLEX', key, from, '+', 'LIMIT', each - 1, 1)[1]
  nth = nth and match(nth, '^[^|]*')
  if nth and (to == '' or nth < to) then to = nth end
end
local from = after == '' and '-' or '(' .. after
local open_from = after == '' and '-' or '(' .. after .. '}'
ends(OPEN, open_from, size)
-- Together they give no more than the size, however many topics there are.
for _, set in ipairs(sets) do ends(set[1], from, math.max(1, math.floor(size / #sets))) end
local function met(id)
  if not where[id] then
    ids[#ids + 1] = id
    where[id] = ''
  end
end
for _, member in ipairs(call('ZRANGEBYLEX', OPEN, open_from, to == '' and '+' or '(' .. to .. '}')) do
  local id, number, body, money = match(member, '^([^|]*)|([^|]*)|([^|]*)|(.*)$')
  open[id] = { number = number, body = body, money = money, member = member }
  met(id)
end
for _, set in ipairs(sets) do
  for _, id in ipairs(call('ZRANGEBYLEX', set[1], from, to == '' and '+' or '[' .. to)) do
    met(id)
    where[id], topics[id] = where[id] .. set[2], set[3]
  end
end
table.sort(ids)
`;

/** What is wrong with where a message is; nil: nothing. */
const JUDGE = `local function misplaced(id, m, seen)
  local state = m[1]
  if #seen > 1 or (seen ~= '' and seen ~= state) then return 'state_doubled' end
  if seen == '' and not ENDED[state] then return 'no_state' end
  local topic, tenant, priority, okey = head_of(m[2])
  local lane = lane_of(topic, tenant, priority, m[5], okey)
  local waits = call('ZSCORE', okey and P .. 'o:' .. lane .. okey or P .. 'l:' .. lane, id)
  if state ~= 'p' then
    if waits then return 'state_doubled' end
    if state == 'i' and (not m[6] or redis.pcall('HEXISTS', P .. 'e:' .. m[6], id) ~= 1) then return 'no_state' end
  elseif not waits and (okey or not m[4]) then
    return 'no_state'
  end
end
`;

/**
 * After the usual three: the id to begin after, one to end with (or empty), how many, the letters of the states to look at; 1 where payloads of all are added up.
 * Answers with the id reached (empty: the end); what is wrong, each with its kind, id, topic, tenant, hour, money and payload; ids that were never counted in; what is here
 * of each bucket (number, how many, ids, payloads); what is open of each (number, how many, ids); and how many were looked at.
 */
export const WALK = script(
  "compare ids",
  "settles",
  `${ACCOUNTS}fits('HLEN', BOOKS) zset(OPEN) fits('HLEN', P .. 'books:gone')
${RANGE}${JUDGE}
local found, uncounted, here, still, bytes, looked = {}, {}, {}, {}, 0, 0
local function sum(sums, number, hash, body)
  local of = sums[number]
  if not of then of = { 0, 0, 0 } sums[number] = of end
  of[1], of[2], of[3] = of[1] + 1, (of[2] + hash) % WRAP, (of[3] + body) % WRAP
end
local function wrong(kind, id, o, m, payload)
  local topic, tenant, hour = topics[id], nil, nil
  if o then
    local b = call('HMGET', account_of(o.number), 't', 'te', 'hr')
    topic, tenant, hour = b[1] or topic, b[2], b[3]
  elseif m and m[2] then
    topic, tenant = head_of(m[2])
    hour = m[7] and whole(math.floor(m[7] / 3600000) * 3600)
  end
  found[#found + 1] = { kind, id, topic or '', tenant or '', hour or '', o and o.money or '', payload or '' }
end
-- Retention of the version before adds nothing up.
local function taken_before(o)
  local topic = call('HGET', account_of(o.number), 't')
  return topic and (call('HGET', P .. 'pruned', topic) or 0) - (call('HGET', P .. 'books:gone', topic) or 0) > 0 and topic
end
local function gone(id, o, seen)
  local topic = seen == '' and o and taken_before(o)
  if topic then
    local hash = hashed(id)
    book_ended(o.number, 'd', hash)
    book(o.number, 'gn', 1) book(o.number, 'gh', hash) book(o.number, 'gb', o.body ~= '' and tonumber(o.body) or 0)
    book('', 'archived', 1) book('', 'unadded', 1)
    call('HINCRBY', P .. 'books:gone', topic, 1)
    remove(OPEN, o.member)
  else
    wrong(match(seen, '[pio]') and 'state_without_message' or 'message_gone', id, o)
    -- It is named: its bucket need not lack it as well.
    if o then
      sum(still, o.number, hashed(id), 0)
      sum(here, o.number, hashed(id), o.body ~= '' and tonumber(o.body) or 0)
    end
  end
end
local function look(id)
  local o, seen = open[id], where[id]
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h', 'q', 'he', 'su', 'le', 'c')
  local payload = not m.err and m[1] and m[2] and call('HGET', P .. 'm:' .. id, 'p')
  if #letters == 3 then
    local topic = topics[id] or (payload and head_of(m[2]))
    for state in string.gmatch(topic and 'drx' or '', '.') do
      if call('ZSCORE', P .. 's:' .. state .. ':' .. topic, id) then seen = seen .. state end
    end
  end
  if not payload then return gone(id, o, seen) end
  bytes = bytes + #payload
  local kind, hash = misplaced(id, m, seen), nil
  if o or ARGV[8] == '1' then
    hash = hashed(id)
    local body = hashed(id .. payload)
    if o and not kind and whole(body) ~= o.body then kind = 'payload_changed' end
    if m[3] and ARGV[8] == '1' then sum(here, m[3], hash, body) end
  end
  if not o and not m[3] then
    uncounted[#uncounted + 1] = id
  elseif not o and not kind and not ENDED[m[1]] then
    kind = 'account_unbalanced'
  end
  if kind then wrong(kind, id, o, m, kind == 'payload_changed' and o.money ~= '' and payload) end
  if o and not kind and ENDED[m[1]] then
    book_ended(o.number, m[1], hash)
    remove(OPEN, o.member)
  elseif o then
    sum(still, o.number, hash, 0)
  end
end
for _, id in ipairs(ids) do
  look(id)
  looked = looked + 1
  if bytes > ${BYTES_MAX} and looked < #ids then
    to = id
    break
  end
end
write_sets()
write_books()
local function listed(sums)
  local reply = {}
  for number, of in pairs(sums) do reply[#reply + 1] = { number, of[1], whole(of[2]), whole(of[3]) } end
  return reply
end
return { to == upto and '' or to, found, uncounted, listed(here), listed(still), looked }
`,
);

/** KEYS: the messages. Answers with the state of each, how far retention has gone (an id), and for those that are not here whether they are open. */
export const WHEREABOUTS = script(
  "where ids are",
  "reads",
  `${ACCOUNTS}local reply = { call('HGET', BOOKS, 'gone_to') or '' }
for _, key in ipairs(KEYS) do
  local state = redis.pcall('HGET', key, 'st')
  if type(state) ~= 'string' then state = open_of(sub(key, ID)) and 'lost' or '' end
  reply[#reply + 1] = state
end
return reply
`,
);
