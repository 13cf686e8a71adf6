/**
 * PRUNE and LEAD: retention of what is settled and past its time, and nothing else (I2); leadership that saves work and never
 * provides safety (I9). CHECK is refused when a write would be.
 */
import { ACCOUNTS } from "../conservation/accounts-lua.ts";
import { RETIRE } from "../conservation/seal-scripts.ts";
import { script } from "./script.ts";

/** Payloads are read once more before they go; so many bytes of them in one script. */
const BYTES_MAX = 8_388_608;

/**
 * After the usual three: how long to keep, how many at most, how much longer dead letters that ended; then name, owner and term of the
 * leadership that must hold, or nothing. Answers with how many were looked at, how many went and how many of these were dead letters; -1: the leadership has ended.
 */
export const PRUNE = script(
  "prune",
  "settles",
  `${ACCOUNTS}${RETIRE}if ARGV[7] ~= '' then
  local l = call('HMGET', P .. 'leader:' .. ARGV[7], 'owner', 'term', 'until')
  if l[1] ~= ARGV[8] or l[2] ~= ARGV[9] or (tonumber(l[3]) or 0) <= now then return { -1, 0, 0 } end
end
zset(P .. 'settled') zset(P .. 'ended') fits('HLEN', P .. 'dedupe') fits('HLEN', P .. 'pruned')
fits('HLEN', BOOKS) zset(OPEN) fits('HLEN', P .. 'books:gone') fits('HLEN', P .. 'books:known') fits('HLEN', P .. 'books:names') fits('HLEN', P .. 'books:seals')
local kept, longer, looked = tonumber(ARGV[4]), tonumber(ARGV[6]), 0
-- Those that ended and stay longer than the others wait in a set of their own, or they would stand before what goes.
local ids = call('ZRANGEBYSCORE', P .. 'ended', '-inf', now - kept - longer, 'LIMIT', 0, ARGV[5])
local waited = #ids
if #ids < tonumber(ARGV[5]) then
  local more = call('ZRANGEBYSCORE', P .. 'settled', '-inf', now - kept, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[5]) - #ids)
  for n = 1, #more, 2 do
    local state = longer > 0 and redis.pcall('HGET', P .. 'm:' .. more[n], 'st')
    if (state == 'r' or state == 'x') and tonumber(more[n + 1]) > now - kept - longer then
      remove(P .. 'settled', more[n])
      add(P .. 'ended', more[n + 1], more[n])
      looked = looked + 1
    else
      ids[#ids + 1] = more[n]
    end
  end
end
local gone, bytes, last, dead = {}, 0, #ids, 0
for n, id in ipairs(ids) do
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h', 'q')
  gone[n] = m
  if m[1] and m[2] then
    m.topic, m.tenant, m.priority, m.okey, m.key = head_of(m[2])
    zset(P .. 's:' .. m[1] .. ':' .. m.topic)
  end
end
-- I12: what goes is added up first, by the script in which it goes. What is accepted and not counted yet stays until it is.
local coming
local function is_coming(id)
  coming = coming or '\\0' .. table.concat(call('LRANGE', P .. 'intake', 0, -1), '\\0') .. '\\0'
  return string.find(coming, '\\0' .. id .. '\\0', 1, true) ~= nil
end
local numbers, began, topics, unseen, furthest = {}, call('HEXISTS', BOOKS, 'began') == 1, {}, {}, ''
local some_open = zset(OPEN) > 0
local function add_up(id, m)
  if not m[3] then
    if is_coming(id) then return false end
    unseen[m.topic] = (unseen[m.topic] or 0) + 1
    return true
  end
  local number, payload, hash = m[3], call('HGET', P .. 'm:' .. id, 'p') or '', hashed(id)
  local open = some_open and open_of(id)
  bytes = bytes + #payload
  if open then
    book_ended(number, m[1], hash)
    call('ZREM', OPEN, open.member)
  end
  book(number, 'gn', 1) book(number, 'gh', hash) book(number, 'gb', hashed(id .. payload)) book('', 'archived', 1)
  if id > furthest then furthest = id end
  numbers[number] = true
  return true
end
local went = 0
for n, id in ipairs(ids) do
  local m = gone[n]
  -- Only the settled: delivered, resolved, discarded.
  local settled = m.topic and (m[1] == 'd' or m[1] == 'r' or m[1] == 'x')
  if not settled or add_up(id, m) then
    went = went + 1
    call('ZREM', P .. (n <= waited and 'ended' or 'settled'), id)
    if settled then
      call('UNLINK', P .. 'm:' .. id)
      if m[1] ~= 'd' then dead = dead + 1 end
      remove(P .. 's:' .. m[1] .. ':' .. m.topic, id)
      -- The key protects as long as its message lives.
      if m.key ~= '' then
        local scope = m.topic .. '\\0' .. m.tenant .. '\\0' .. m.key
        if call('HGET', P .. 'dedupe', scope) == id then call('HDEL', P .. 'dedupe', scope) end
      end
      topics[m.topic] = (topics[m.topic] or 0) + 1
    end
  end
  if bytes > ${BYTES_MAX} then
    last = n
    break
  end
end
write_sets()
for topic, count in pairs(topics) do
  call('HINCRBY', P .. 'pruned', topic, count)
  if began then call('HINCRBY', P .. 'books:gone', topic, count) end
end
for topic, count in pairs(unseen) do
  if began then
    call('HINCRBY', P .. 'books:known', topic, count)
    book('', 'unseen', count)
  end
end
if furthest > (call('HGET', BOOKS, 'gone_to') or '') then call('HSET', BOOKS, 'gone_to', furthest) end
write_books()
for number in pairs(numbers) do retire(number) end
return { last < #ids and tonumber(ARGV[5]) or looked + went, went, dead }
`,
);

/** After the usual three: how long to keep, how much longer dead letters that ended, where to go on, how many. Answers as PRUNE, of what it would do. */
export const PRUNE_LOOK = script(
  "look what to prune",
  "settles",
  `local kept, longer, from, goes = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), 0
if from == 0 then goes = call('ZCOUNT', P .. 'ended', '-inf', now - kept - longer) end
local more = call('ZRANGEBYSCORE', P .. 'settled', '-inf', now - kept, 'WITHSCORES', 'LIMIT', from, ARGV[7])
for n = 1, #more, 2 do
  local state = longer > 0 and redis.pcall('HGET', P .. 'm:' .. more[n], 'st')
  local stays = (state == 'r' or state == 'x') and tonumber(more[n + 1]) > now - kept - longer
  if not stays then goes = goes + 1 end
end
return { #more / 2, goes }
`,
);

/** After the usual three: name, owner, how long. */
export const LEAD = script(
  "lead",
  "settles",
  `local key, owner, ttl = P .. 'leader:' .. ARGV[4], ARGV[5], tonumber(ARGV[6])
local m = call('HMGET', key, 'owner', 'term', 'until')
local holder, term, until_ms = m[1] or '', tonumber(m[2]) or 0, tonumber(m[3]) or 0
if ttl > 0 and (holder == owner or until_ms <= now) then
  if holder ~= owner then term = term + 1 end
  holder = owner
  call('HSET', key, 'owner', owner, 'term', term, 'until', math.floor(now + ttl))
elseif ttl <= 0 and holder == owner then
  holder = ''
  call('HSET', key, 'owner', '', 'until', 0)
end
return { (ttl > 0 and holder == owner) and 1 or 0, term, holder }
`,
);

/**
 * After the usual three: a mark, and 1 where a person knows what was lost before this data. Answers with the mark of this data, another one
 * than before meaning that the data is another, too; and whether a person knows.
 */
export const CHECK = script(
  "check",
  "grows",
  `call('HSETNX', P .. 'meta', 'born', ARGV[4])
local born = call('HGET', P .. 'meta', 'born')
if ARGV[5] == '1' then call('HSET', P .. 'meta', 'known', born) end
return { born, call('HGET', P .. 'meta', 'known') == born and 1 or 0 }
`,
);
