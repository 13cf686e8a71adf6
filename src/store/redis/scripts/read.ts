/**
 * READ, LIST and COUNTS: one message; pages by id, newest first, merged from the sets of each topic and state; numbers are the sizes of the same
 * sets, so reading them costs the same however many messages there are (DF-8, DF-33).
 */
import { script } from "./script.ts";

/** All fields of the message that is the first key. A script, because a script notices that the data is gone. */
export const READ_MESSAGE = script("read a message", "reads", "return call('HGETALL', KEYS[1])\n");

/** How many ids one call may look at; the caller goes on from where it stopped. */
const LOOKED_AT_MAX = 5_000;
const PIECE_MIN = 5;

/**
 * After the usual three: states as letters, topic, tenant, key (empty: any), id to start below, how many, 1 for payloads.
 * Answers with the id reached (empty: the end) and the messages.
 */
export const LIST = script(
  "list",
  "reads",
  `local states, topic, tenant, key, below, want = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
-- The sets as a heap, the one with the newest id at its top: each id is looked at once, and each set read in small pieces.
local heap, size, piece = {}, 0, 0
local function sift(at)
  while true do
    local best, left = at, 2 * at
    if left <= size and heap[left].id > heap[best].id then best = left end
    if left < size and heap[left + 1].id > heap[best].id then best = left + 1 end
    if best == at then return end
    heap[at], heap[best] = heap[best], heap[at]
    at = best
  end
end
local function read(head, from)
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
    if read(head, below == '' and '+' or '(' .. below) then
      size = size + 1
      heap[size] = head
    end
  end
end
for at = math.floor(size / 2), 1, -1 do sift(at) end
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
  if not advance(head) then
    heap[1], heap[size] = heap[size], nil
    size = size - 1
  end
  if size > 0 then sift(1) end
end
if size == 0 then below = '' end
local reply = { below }
for _, id in ipairs(found) do
  -- What another client has overwritten is left out here; the reconciliation quarantines it.
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'h', 'c', 'st', 'n', 'g', 'r', 'du', 'he', 'di', 'lf')
  if not m.err and m[1] and m[3] then
    local failed = m[10] and call('HGET', P .. 'm:' .. id, 'h' .. m[10])
    local payload = ARGV[10] == '1' and call('HGET', P .. 'm:' .. id, 'p') or ''
    reply[#reply + 1] = { id, payload, failed, unpack(m, 1, 9) }
  end
end
return reply
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
