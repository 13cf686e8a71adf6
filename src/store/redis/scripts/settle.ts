/**
 * SETTLE in one script: what became of each message is written under the token of its lease, together with its attempt row
 * (DF-7, DA-9). A stale token, a message that is settled already or another attempt than the one in flight changes nothing (I4).
 */
import { script } from "./script.ts";

/**
 * KEYS: `leased`, `lanes`, `settled`, `waiters`, the leases, the messages in the order of the arguments. After the usual three
 * arguments: how many leases; for each lease its token, how many settles, and the settles. Each of these begins with its kind, the
 * attempt, and the row of the attempt before and after its moment; further
 * - `d` delivered and `u` released unstarted: nothing;
 * - `r` retry: delay, counted, digit of its lane, detail;
 * - `h` hold: counted, reason, detail;
 * - `x` dead: whether it blocks its order, detail.
 * Answers with 1 or 0 for each message (none: all were settled), and the lanes that have new work.
 */
export const SETTLE = script(
  "settle",
  "settles",
  `local STATE = { d = 'd', r = 'p', h = 'p', u = 'p', x = 'o' }
local WIDTH = { d = 4, u = 4, r = 8, h = 7, x = 6 }
local L, at, n = tonumber(ARGV[4]), 5, 0
local judged, done, infos, emptied, gone = {}, {}, {}, {}, {}
zset(P .. 'leased')
-- The sets that a change into this state writes, looked at once.
local function info_of(lane, state)
  local name = state .. lane
  local info = infos[name]
  if not info then
    local topic = topic_of(lane)
    info = { line = P .. 'l:' .. lane, flying = P .. 's:i:' .. topic, set = P .. 's:' .. state .. ':' .. topic, ordered = sub(lane, 1, 1) == 'o' }
    zset(info.flying) zset(info.set)
    if state == 'p' then fits('SCARD', P .. 'lanes') zset(info.line) end
    if state == 'd' then zset(P .. 'settled') end
    infos[name] = info
  end
  return info
end
local function judge(message, e, lane)
  local kind, m = ARGV[at], redis.pcall('HMGET', message, 'st', 'n', 'hn')
  if m.err or m[1] ~= 'i' then
    done[message] = true
    zset(P .. 'quarantine')
    emptied[#emptied + 1] = { e, sub(message, ID) }
    return false
  end
  if m[2] ~= ARGV[at + 1] then return false end
  done[message] = true
  -- Suspected otherwise than before, or failed for the first time: another lane.
  if kind == 'r' and sub(lane, 1, 1) == 'u' then lane = 'u' .. ARGV[at + 6] .. sub(lane, 3) end
  local info = info_of(lane, STATE[kind])
  m.at, m.e, m.lane, m.info = at, e, lane, info
  if info.ordered then
    local _, _, _, okey = head_of(call('HGET', message, 'h'))
    fits_order(lane, okey)
    m.okey = okey
  end
  if kind == 'u' then
    local due = call('HMGET', message, 'du', 'c')
    m.due = due[1] or due[2]
  end
  return m
end
for l = 1, L do
  local e, token, count, fields = KEYS[4 + l], ARGV[at], tonumber(ARGV[at + 1]), { 't' }
  for k = 1, count do fields[k + 1] = sub(KEYS[4 + L + n + k], ID) end
  local held = read_many(e, fields)
  at = at + 2
  for k = 1, count do
    n = n + 1
    local message, lane = KEYS[4 + L + n], held[k + 1]
    judged[n] = held[1] == token and lane and not done[message] and judge(message, e, lane) or false
    at = at + WIDTH[ARGV[at]]
  end
end
local lanes, heads = {}, {}
local function leave(e, id)
  local list = gone[e]
  if not list then list = {} gone[e] = list end
  list[#list + 1] = id
end
-- A message that cannot be read any more would keep its lease for ever.
for _, one in ipairs(emptied) do
  leave(one[1], one[2])
  quarantine(one[2])
end
-- The row of an attempt, for all that was started (I5).
local function row(m, due, detail)
  local number = m[3] and string.format('%.0f', m[3] + 1) or '1'
  return number, ARGV[m.at + 2] .. stamp .. ARGV[m.at + 3] .. due .. '|' .. detail
end
local function give_back(m, id, due)
  if m.okey then
    add(P .. 'o:' .. m.lane .. m.okey, place_of(id), id)
  elseif due then
    add(m.info.line, due, id)
    lanes[m.lane] = true
  end
end
local function uncounted(m, message) call('HSET', message, 'n', string.format('%.0f', m[2] - 1)) end
local APPLY = {
  d = function(m, message, id)
    local number, text = row(m, '', '')
    call('HSET', message, 'st', 'd', 'hn', number, 'h' .. number, text)
    add(P .. 'settled', stamp, id)
  end,
  u = function(m, message, id)
    call('HSET', message, 'st', 'p')
    uncounted(m, message)
    give_back(m, id, m.due)
  end,
  r = function(m, message, id)
    local due = string.format('%.0f', math.floor(now + tonumber(ARGV[m.at + 4])))
    local number, text = row(m, due, ARGV[m.at + 7])
    call('HSET', message, 'st', 'p', 'du', due, 'su', ARGV[m.at + 6], 'hn', number, 'h' .. number, text, 'lf', number)
    if ARGV[m.at + 5] ~= '1' then uncounted(m, message) end
    give_back(m, id, due)
  end,
  h = function(m, message, id)
    local number, text = row(m, '', ARGV[m.at + 6])
    call('HSET', message, 'st', 'p', 'he', ARGV[m.at + 5], 'hn', number, 'h' .. number, text, 'lf', number)
    if ARGV[m.at + 4] ~= '1' then uncounted(m, message) end
    give_back(m, id, nil)
  end,
  x = function(m, message, id)
    local number, text = row(m, '', ARGV[m.at + 5])
    call('HSET', message, 'st', 'o', 'di', stamp, 'hn', number, 'h' .. number, text, 'lf', number)
  end,
}
local results, all = {}, true
for k, m in ipairs(judged) do
  results[k] = m and 1 or 0
  if m then
    local message, kind = KEYS[4 + L + k], ARGV[m.at]
    local id = sub(message, ID)
    APPLY[kind](m, message, id)
    remove(m.info.flying, id)
    add(m.info.set, '0', id)
    if m.okey then
      if kind == 'x' and ARGV[m.at + 4] == '1' then
        call('HSET', P .. 'k:' .. m.lane, m.okey, 'b' .. id)
      else
        call('HDEL', P .. 'k:' .. m.lane, m.okey)
      end
      heads[#heads + 1] = m
      lanes[m.lane] = true
    end
    leave(m.e, id)
  else
    all = false
  end
end
write_sets()
-- The lease goes with the last message in it.
for e, ids in pairs(gone) do
  if call('HLEN', e) - #ids <= 2 then
    call('DEL', e)
    call('ZREM', P .. 'leased', sub(e, ID))
  else
    many('HDEL', e, ids)
  end
end
for _, m in ipairs(heads) do rehead(m.lane, m.okey) end
local told = {}
for lane in pairs(lanes) do
  list_lane(lane)
  told[#told + 1] = lane
end
tell_lanes(told)
return { all and {} or results, told }
`,
);
