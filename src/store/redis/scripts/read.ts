/**
 * READ, LIST and COUNTS: one message; pages by id, newest first, merged from the sets of each topic and state; pages of what is due, merged from
 * lanes; numbers are the sizes of the same sets. What these cost does not grow with what waits (DF-8, DF-33).
 */
import { script } from "./script.ts";

/** All fields of the message that is the first key. A script, because a script notices that the data is gone. */
export const READ_MESSAGE = script("read a message", "reads", "return call('HGETALL', KEYS[1])\n");

/** How many ids one call may look at; the caller goes on from where it stopped. */
const LOOKED_AT_MAX = 5_000;
const PIECE_MIN = 5;

/** Sets as a heap, the one that comes before all others at its top: each id is looked at once, and each set read in small pieces. */
const heap = (before: (a: string, b: string) => string) => `local heap, size = {}, 0
local function sift(at)
  while true do
    local best, left = at, 2 * at
    if left <= size and (${before("heap[left]", "heap[best]")}) then best = left end
    if left < size and (${before("heap[left + 1]", "heap[best]")}) then best = left + 1 end
    if best == at then return end
    heap[at], heap[best] = heap[best], heap[at]
    at = best
  end
end
local function push(head)
  size = size + 1
  heap[size] = head
end
local function sort()
  for at = math.floor(size / 2), 1, -1 do sift(at) end
end
-- After its top went on to its next id, or has none any more.
local function went_on(more)
  if not more then
    heap[1], heap[size] = heap[size], nil
    size = size - 1
  end
  if size > 0 then sift(1) end
end
`;

/** A message as viewOfRow() reads it, and whether its payload is there, if that is wanted; nothing where another client has overwritten it. */
const ROW = `local function row_of(id, payload)
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'h', 'c', 'st', 'n', 'g', 'r', 'du', 'he', 'di', 'lf', payload == '1' and 'p' or 'st')
  if m.err or not (m[1] and m[3]) then return nil end
  local failed = m[10] and call('HGET', P .. 'm:' .. id, 'h' .. m[10])
  return { id, payload == '1' and m[11] or '', failed, unpack(m, 1, 9) }, m[11]
end
`;

/**
 * After the usual three: states as letters, topic, tenant, key (empty: any), id to start below, how many, 1 for payloads.
 * Answers with the id reached (empty: the end) and the messages.
 */
export const LIST = script(
  "list",
  "reads",
  `local states, topic, tenant, key, below, want = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local piece = 0
${heap((a, b) => `${a}.id > ${b}.id`)}${ROW}local function read(head, from)
  head.list, head.at = call('ZREVRANGEBYLEX', head.set, from, '-', 'LIMIT', 0, piece), 1
  head.id = head.list[1]
  return head.id
end
local function advance(head)
  head.at = head.at + 1
  head.id = head.list[head.at] or (#head.list == piece and read(head, '(' .. head.list[piece]) or nil)
  return head.id
end
local topics = topic ~= '' and { topic } or call('HKEYS', P .. 'accepted')
piece = math.max(${PIECE_MIN}, math.min(want, math.floor(${LOOKED_AT_MAX} / #topics)))
for _, name in ipairs(topics) do
  for state in string.gmatch(states, '%a') do
    local head = { set = P .. 's:' .. state .. ':' .. name }
    if read(head, below == '' and '+' or '(' .. below) then push(head) end
  end
end
sort()
local found, looked = {}, 0
while size > 0 and #found < want and looked < ${LOOKED_AT_MAX} do
  local head = heap[1]
  below = head.id
  looked = looked + 1
  local fits_filter = true
  if tenant ~= '' or key ~= '' then
    local its_head = redis.pcall('HGET', P .. 'm:' .. below, 'h')
    local _, of, _, _, its = head_of(type(its_head) == 'string' and its_head or '')
    fits_filter = (tenant == '' or of == tenant) and (key == '' or its == key)
  end
  if fits_filter then found[#found + 1] = below end
  went_on(advance(head))
end
if size == 0 then below = '' end
local reply = { below }
-- What another client has overwritten is left out here; the reconciliation quarantines it.
for _, id in ipairs(found) do
  local row = row_of(id, ARGV[10])
  reply[#reply + 1] = row
end
return reply
`,
);

/**
 * After the usual three: how many, 1 for payloads, lanes. Answers with lane and id of each that cannot be read, and the messages, the longest
 * due first.
 */
export const LIST_DUE = script(
  "list what is due",
  "reads",
  `local want, lost = tonumber(ARGV[4]), {}
${heap((a, b) => `${a}.due < ${b}.due or ${a}.due == ${b}.due and ${a}.id < ${b}.id`)}${ROW}local piece = math.ceil(want / math.max(1, #ARGV - 5))
local function advance(head)
  if head.at % piece == 0 then
    head.list = call('ZRANGE', P .. 'l:' .. head.lane, head.at, head.at + piece - 1, 'WITHSCORES')
  end
  local n = head.at % piece * 2
  head.at, head.id, head.due = head.at + 1, head.list[n + 1], tonumber(head.list[n + 2])
  return head.due and head.due <= now
end
for n = 6, #ARGV do
  local head = { lane = ARGV[n], at = 0 }
  if advance(head) then push(head) end
end
sort()
local reply = { lost }
while size > 0 and want > 0 do
  local head = heap[1]
  local row, whole = row_of(head.id, ARGV[5])
  want = want - 1
  if whole and row[6] == 'p' and tonumber(row[7] or '0') then
    reply[#reply + 1] = row
  else
    lost[#lost + 1] = head.lane
    lost[#lost + 1] = head.id
  end
  if want > 0 then went_on(advance(head)) end
end
return reply
`,
);

/**
 * After the usual three: lane and id of each. What still is not a message that waits leaves its lane and is quarantined, as by a claim (DF-1): judged
 * and removed in one step (DF-31).
 */
export const QUARANTINE_LOST = script(
  "quarantine what cannot be read",
  "settles",
  `fits('SCARD', P .. 'lanes') zset(P .. 'quarantine')
for n = 4, #ARGV, 2 do zset(P .. 'l:' .. ARGV[n]) zset(P .. 's:p:' .. topic_of(ARGV[n])) end
for n = 4, #ARGV, 2 do
  local lane, id = ARGV[n], ARGV[n + 1]
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h', 'p', 'n')
  if (m.err or m[1] ~= 'p' or not (m[2] and m[3] and tonumber(m[4] or '0'))) and call('ZREM', P .. 'l:' .. lane, id) == 1 then
    call('ZREM', P .. 's:p:' .. topic_of(lane), id)
    quarantine(id)
    list_lane(lane)
  end
end
`,
);

/** After the usual three: states as letters. Answers with topic, state, number and creation of the oldest, and the time. */
export const COUNTS = script(
  "counts",
  "reads",
  `local reply = { now }
for _, topic in ipairs(call('HKEYS', P .. 'accepted')) do
  for state in string.gmatch(ARGV[4], '%a') do
    local set = P .. 's:' .. state .. ':' .. topic
    local number = call('ZCARD', set)
    if number > 0 then
      local oldest = redis.pcall('HGET', P .. 'm:' .. call('ZRANGE', set, 0, 0)[1], 'c')
      reply[#reply + 1] = { topic, state, number, type(oldest) == 'string' and oldest or false }
    end
  end
end
return reply
`,
);
