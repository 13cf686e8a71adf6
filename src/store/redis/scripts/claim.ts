/**
 * CLAIM in one script: the due messages of the named lanes leave them, are counted as attempts and enter one lease. What is
 * read and what is taken are one step, so nobody acts on a message that somebody else has (DF-6).
 */
import { script } from "./script.ts";

const FIELDS = "'st', 'tp', 'te', 'ke', 'pr', 'ok', 'p', 'f', 'n', 'ba', 'dt', 'su', 'he'";

/** Owner, lease time, bytes, lease, token; what follows names lanes or messages. */
const BEGIN = `local owner, lease_ms, bytes, lease, token = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
fits('SCARD', P .. 'lanes') zset(P .. 'leased') zset(P .. 'quarantine')
local taken, lost, size, full = {}, {}, 0, false
local function take(id, lane, m)
  size = size + #m[7]
  -- At least one, or a message larger than the budget would never be claimed by anybody.
  if bytes and size > bytes and #taken > 0 then
    full = true
    return
  end
  zset(P .. 's:p:' .. m[2]) zset(P .. 's:i:' .. m[2])
  if m[6] then fits_order(lane, m[6]) end
  taken[#taken + 1] = { id, lane, m }
end
`;

const END = `if #taken == 0 then return {} end
local reply, open, lanes = {}, { 't', token, 'o', owner }, {}
for _, one in ipairs(taken) do
  local id, lane, m = one[1], one[2], one[3]
  local attempt = (tonumber(m[9]) or 0) + 1
  call('HSET', P .. 'm:' .. id, 'st', 'i', 'n', attempt, 'le', lease)
  remove(P .. 'l:' .. lane, id)
  remove(P .. 's:p:' .. m[2], id)
  add(P .. 's:i:' .. m[2], 0, id)
  if m[6] then
    call('ZREM', P .. 'o:' .. lane .. m[6], id)
    call('HSET', P .. 'k:' .. lane, m[6], 'f' .. id)
  end
  open[#open + 1] = id
  open[#open + 1] = lane
  lanes[lane] = true
  reply[#reply + 1] = { id, lane, attempt, m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[10], m[11], m[12] }
end
write_sets()
many('HSET', P .. 'e:' .. lease, open)
call('ZADD', P .. 'leased', now + lease_ms, lease)
for lane in pairs(lanes) do list_lane(lane) end
return reply
`;

/** Lane and limit for each lane. */
export const CLAIM = script(
  "claim",
  "settles",
  `${BEGIN}for i = 9, #ARGV, 2 do
  local lane = ARGV[i]
  local from = P .. 'l:' .. lane
  for _, id in ipairs(full and {} or call('ZRANGEBYSCORE', from, '-inf', now, 'LIMIT', 0, ARGV[i + 1])) do
    local m = redis.pcall('HMGET', P .. 'm:' .. id, ${FIELDS})
    if m.err or m[1] ~= 'p' or not m[7] then
      lost[#lost + 1] = { from, id, lane }
    elseif not full then
      take(id, lane, m)
    end
  end
end
-- A lane names what is not there, or what is not waiting: never silently dropped (DF-1, DF-31).
for _, one in ipairs(lost) do
  call('ZREM', one[1], one[2])
  quarantine(one[2])
  list_lane(one[3])
end
${END}`,
);

/** The ids. What is not pending, is held or has an order to keep is left out. */
export const CLAIM_NAMED = script(
  "claim by id",
  "settles",
  `${BEGIN}local seen = {}
for i = 9, #ARGV do
  local id = ARGV[i]
  local m = redis.pcall('HMGET', P .. 'm:' .. id, ${FIELDS})
  if not (m.err or seen[id] or full) and m[1] == 'p' and m[7] and not m[6] and not m[13] then
    seen[id] = true
    local lane = lane_of(m[2], m[3], m[5], m[12], false)
    zset(P .. 'l:' .. lane)
    take(id, lane, m)
  end
end
${END}`,
);
