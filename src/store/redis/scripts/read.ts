/**
 * LIST and COUNTS: pages by id, newest first, merged from the sets of each topic and state; numbers are the sizes of the same
 * sets, so reading them costs the same however many messages there are (DF-8, DF-33).
 */
import { script } from "./script.ts";

/** How many ids one call may look at; the caller goes on from where it stopped. */
const LOOKED_AT_MAX = 5_000;

/**
 * After the usual three: states as letters, topic, tenant, key (empty: any), id to start below, how many, 1 for payloads.
 * Answers with the id reached (empty: the end) and the messages.
 */
export const LIST = script(
  "list",
  "reads",
  `local states, topic, tenant, key, below, want = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local sets = {}
for _, name in ipairs(topic ~= '' and { topic } or call('HKEYS', P .. 'accepted')) do
  for state in string.gmatch(states, '%a') do sets[#sets + 1] = P .. 's:' .. state .. ':' .. name end
end
local found, looked, piece = {}, 0, math.min(want, 200)
while #found < want and looked < ${LOOKED_AT_MAX} do
  local ids = {}
  for _, set in ipairs(sets) do
    for _, id in ipairs(call('ZREVRANGEBYLEX', set, below == '' and '+' or '(' .. below, '-', 'LIMIT', 0, piece)) do
      ids[#ids + 1] = id
    end
  end
  table.sort(ids, function(a, b) return a > b end)
  if #ids == 0 then
    below = ''
    break
  end
  for n = 1, math.min(piece, #ids) do
    below = ids[n]
    looked = looked + 1
    local fits_filter = true
    if tenant ~= '' or key ~= '' then
      local head = redis.pcall('HGET', P .. 'm:' .. below, 'h')
      local _, of, _, _, its = head_of(type(head) == 'string' and head or '')
      fits_filter = (tenant == '' or of == tenant) and (key == '' or its == key)
    end
    if fits_filter then found[#found + 1] = below end
    if #found == want then break end
  end
end
local reply = { below }
for _, id in ipairs(found) do
  -- What another hand has overwritten is left out here; the reconciliation sets it aside.
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
