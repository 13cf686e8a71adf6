/**
 * COUNT: what enqueue wrote into the intake is counted into its bucket, exactly once, in the script that takes it out of the intake. Nothing that delivers a message
 * writes there.
 */
import { script } from "../scripts/script.ts";
import { ACCOUNTS, INTAKE } from "./accounts-lua.ts";

/**
 * The first time: what is there already, accepted by the version before, is still to be found by the walk; what went before is nobody's any more.
 * `books:known` is how many of a topic are counted in or given up, `books:gone` how many went with retention and were added up.
 */
const BEGIN = `local function begin()
  local counters = call('HGETALL', P .. 'accepted')
  for n = 1, #counters, 2 do
    local here = 0
    for state in string.gmatch('piodrx', '.') do here = here + call('ZCARD', P .. 's:' .. state .. ':' .. counters[n]) end
    call('HSET', P .. 'books:known', counters[n], whole(counters[n + 1] - here))
  end
  local pruned = call('HGETALL', P .. 'pruned')
  if #pruned > 0 then many('HSET', P .. 'books:gone', pruned) end
  call('HSET', BOOKS, 'began', stamp, 'since', stamp, 'state', 'unknown', 'reason', 'no pass has ended yet')
end
`;

/** Of how many the version before has accepted, and of how many it has taken by retention, nothing is known. Only right while the intake is empty. */
const BEYOND = `local function beyond(counter, ours)
  local all, sum = call('HGETALL', P .. counter), 0
  for n = 1, #all, 2 do sum = sum + math.max(0, all[n + 1] - (call('HGET', P .. ours, all[n]) or 0)) end
  return whole(sum)
end
`;

/**
 * KEYS: `intake`, `books`. After the usual three: how many at most, or nearly so; empty, or the number of the turn that the caller has seen, and then
 * how many entries, and for each entry with money the sum of its bucket and the money of each id. Answers with `done`, how many entries are left and how many
 * were taken; `again`: another was quicker; or `priced`, the turn, and the entries with topic, tenant, hour, money field, the sum so far, ids and payloads.
 */
export const COUNT = script(
  "count in",
  "settles",
  `${ACCOUNTS}${INTAKE}${BEGIN}${BEYOND}
fits('HLEN', BOOKS) zset(OPEN) fits('HLEN', P .. 'books:names') fits('HLEN', P .. 'books:known') fits('HLEN', P .. 'books:gone')
local limit, expected = tonumber(ARGV[4]), ARGV[5]
local mark = call('HMGET', BOOKS, 'began', 'turn')
local turn = mark[2] or '0'
if expected ~= '' and expected ~= turn then return { 'again' } end
local texts, entries, count, priced = call('LRANGE', P .. 'intake', 0, expected == '' and 99 or ARGV[6] - 1), {}, 0, false
for n, text in ipairs(texts) do
  if expected == '' and count >= limit then break end
  local one = entry_of(text)
  local number = call('HGET', P .. 'books:names', one.name)
  local known = number and call('HMGET', account_of(number), 'mf', 'am') or {}
  one.number, one.field, one.sum, one.ids = number, known[1], known[2], {}
  if not number then one.field = match(call('HGET', P .. 't:' .. one.topic, 'definition') or '', '"moneyField":"([%w_.-]+)"') end
  for id in string.gmatch(one.more, '[^%z]+') do one.ids[#one.ids + 1] = id end
  count, priced = count + #one.ids, priced or (one.field and true)
  entries[n] = one
end
if priced and expected == '' then
  local reply = { 'priced', turn }
  for _, one in ipairs(entries) do
    local payloads = {}
    if one.field then
      for k, id in ipairs(one.ids) do
        local m = redis.pcall('HMGET', P .. 'm:' .. id, 'p', 'q')
        payloads[k] = not m.err and not m[2] and m[1] or ''
      end
    end
    reply[#reply + 1] = { one.topic, one.tenant, one.hour, one.field or '', one.sum or '0', one.ids, payloads }
  end
  return reply
end
if not mark[1] then begin() end
local function bucket_of(one)
  local number = call('HGET', P .. 'books:names', one.name)
  if number then return number end
  number = whole(call('HINCRBY', BOOKS, 'last', 1))
  call('HSET', P .. 'books:names', one.name, number)
  call('HSET', account_of(number), 't', one.topic, 'te', one.tenant, 'hr', one.hour)
  if one.field then call('HSET', account_of(number), 'mf', one.field) end
  book('', 'buckets', 1)
  return number
end
-- A bucket that was sealed lives again: all that was in it had ended.
local function unseal(number)
  local b = call('HMGET', account_of(number), 'se', 'an', 'ah')
  if not b[1] then return end
  call('HDEL', account_of(number), 'se')
  call('HSET', account_of(number), 'dn', b[2], 'sh', b[3])
  book('', 'sealed', -1)
end
-- All ids of one entry; by hand, because this is done once for every message that there is.
local function count_in(number, one, at)
  local n, ids, bodies, ended, ended_ids = 0, 0, 0, {}, 0
  for k, id in ipairs(one.ids) do
    local key = P .. 'm:' .. id
    local m = redis.pcall('HMGET', key, 'q', 'st', 'p')
    if not m[1] then
      local hash, body = hashed(id), not m.err and m[3] and hashed(id .. m[3])
      n, ids, bodies = n + 1, (ids + hash) % WRAP, (bodies + (body or 0)) % WRAP
      if body and ENDED[m[2]] then
        ended[m[2]], ended_ids = (ended[m[2]] or 0) + 1, (ended_ids + hash) % WRAP
      else
        add(OPEN, '0', id .. '|' .. number .. '|' .. (body and whole(body) or '') .. '|' .. (one.field and ARGV[at + k] or ''))
      end
      if body then call('HSET', key, 'q', number) end
    end
  end
  book(number, 'an', n) book(number, 'ah', ids) book(number, 'ab', bodies) book(number, 'sh', ended_ids)
  book('', 'accepted', n) book('', 'hash', ids)
  for state, count in pairs(ended) do book(number, ENDED[state][1], count) book('', ENDED[state][2], count) end
  return n
end
local at = 7
for _, one in ipairs(entries) do
  local number = bucket_of(one)
  unseal(number)
  if one.field then call('HSET', account_of(number), 'am', ARGV[at]) end
  call('HINCRBY', P .. 'books:known', one.topic, count_in(number, one, at))
  if one.field then at = at + 1 + #one.ids end
end
write_sets()
write_books()
if #entries > 0 then
  call('LTRIM', P .. 'intake', #entries, -1)
  call('HINCRBY', BOOKS, 'turn', 1)
end
local left = call('LLEN', P .. 'intake')
if left == 0 then call('HSET', BOOKS, 'uncounted', beyond('accepted', 'books:known'), 'taken', beyond('pruned', 'books:gone')) end
return { 'done', left, #entries }
`,
);

/**
 * KEYS: `intake`. After the usual three: ids that were not counted when the intake was empty. Those that the version before can have accepted go into the intake;
 * answers with how many, and with the others, which nothing accepted.
 */
export const COUNT_LATE = script(
  "count late",
  "settles",
  `fits('LLEN', P .. 'intake')
local left, late, others = {}, 0, {}
for n = 4, #ARGV do
  local m = redis.pcall('HMGET', P .. 'm:' .. ARGV[n], 'q', 'st', 'h', 'c')
  if not m.err and m[2] and m[3] and not m[1] then
    local topic, tenant = head_of(m[3])
    if not left[topic] then
      left[topic] = (call('HGET', P .. 'accepted', topic) or 0) - (call('HGET', P .. 'books:known', topic) or 0)
    end
    if left[topic] > 0 then
      left[topic], late = left[topic] - 1, late + 1
      call('RPUSH', P .. 'intake', topic .. '\\0' .. tenant .. '\\0' .. (m[4] or stamp) .. '\\0' .. ARGV[n])
    else
      others[#others + 1] = { ARGV[n], topic, tenant, m[4] or stamp }
    end
  end
end
return { late, others }
`,
);

/** KEYS: `books`. What the version before accepted and a whole round has not met: it went before it was counted. Answers with how many. */
export const GIVE_UP = script(
  "give up",
  "settles",
  `if call('LLEN', P .. 'intake') > 0 then return 0 end
local all, sum = call('HGETALL', P .. 'accepted'), 0
for n = 1, #all, 2 do
  local off = all[n + 1] - (call('HGET', P .. 'books:known', all[n]) or 0)
  if off > 0 then
    sum = sum + off
    call('HINCRBY', P .. 'books:known', all[n], off)
  end
end
call('HINCRBY', P .. 'books', 'unseen', sum)
call('HSET', P .. 'books', 'uncounted', 0)
return sum
`,
);
