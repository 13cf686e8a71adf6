/**
 * SETTLE in one script: what became of each message is written under the token of its lease, together with its attempt row
 * (DF-7, DA-9). A stale token, a message that is settled already or another attempt than the one in flight changes nothing (I4).
 */
import { script } from "./script.ts";

/** The arguments of one settle: id, lease, token, attempt, duration, kind, delay, counted, suspicion, blocks, outcome, detail, reason. */
export const SETTLE_ARGS = 13;

/** After the usual three: the settles. Answers with 1 or 0 for each, and the lanes that have new work. */
export const SETTLE = script(
  "settle",
  "settles",
  `local W = ${SETTLE_ARGS}
fits('SCARD', P .. 'lanes') zset(P .. 'leased') zset(P .. 'settled') zset(P .. 'quarantine')
local STATE = { delivered = 'd', retry = 'p', hold = 'p', release = 'p', dead = 'o' }
local tokens, done, judged, results, emptied = {}, {}, {}, {}, {}
local function judge(i)
  local id, lease, kind = ARGV[i], ARGV[i + 1], ARGV[i + 5]
  local e = P .. 'e:' .. lease
  if tokens[lease] == nil then tokens[lease] = call('HGET', e, 't') end
  if tokens[lease] ~= ARGV[i + 2] or done[id] or call('HEXISTS', e, id) == 0 then return nil end
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'n', 'tp', 'te', 'pr', 'su', 'ok', 'hn', 'du')
  if m.err or m[1] ~= 'i' then
    emptied[#emptied + 1] = { e, id }
    return nil
  end
  if m[2] ~= ARGV[i + 3] then return nil end
  done[id] = true
  local suspicion = kind == 'retry' and ARGV[i + 8] or m[6]
  local lane = lane_of(m[3], m[4], m[5], suspicion, m[7])
  zset(P .. 's:i:' .. m[3]) zset(P .. 's:' .. STATE[kind] .. ':' .. m[3]) zset(P .. 'l:' .. lane)
  if m[7] then fits_order(lane, m[7]) end
  return { i, m, lane }
end
for i = 4, #ARGV, W do judged[#judged + 1] = judge(i) or false end
local touched, lanes, heads = {}, {}, {}
-- What a lease names and nobody can read any more would keep that lease for ever.
for _, one in ipairs(emptied) do
  call('HDEL', one[1], one[2])
  touched[one[1]] = true
  quarantine(one[2])
end
-- The row of an attempt, for all that was started (I5).
local function row(i, m, due, fields)
  local number = (tonumber(m[8]) or 0) + 1
  local counted = (ARGV[i + 5] == 'delivered' or ARGV[i + 5] == 'dead') and '1' or ARGV[i + 7]
  fields[#fields + 1] = 'hn' fields[#fields + 1] = number
  fields[#fields + 1] = 'h' .. number
  fields[#fields + 1] = table.concat({ ARGV[i + 3], ARGV[i + 10], counted, now, ARGV[i + 4], due, ARGV[i + 11] }, '|')
  if ARGV[i + 10] ~= 'delivered' and ARGV[i + 10] ~= 'duplicate' then
    fields[#fields + 1] = 'lf' fields[#fields + 1] = number
  end
end
local function apply(i, m, lane)
  local id, kind = ARGV[i], ARGV[i + 5]
  local key, state, due = P .. 'm:' .. id, STATE[kind], ''
  local attempts = tonumber(m[2])
  if kind == 'release' or ((kind == 'retry' or kind == 'hold') and ARGV[i + 7] ~= '1') then attempts = attempts - 1 end
  local fields = { 'st', state, 'n', attempts }
  local function field(name, value) fields[#fields + 1] = name fields[#fields + 1] = value end
  if kind == 'delivered' then
    field('se', now)
    add(P .. 'settled', now, id)
  elseif kind == 'retry' then
    due = math.floor(now + tonumber(ARGV[i + 6]))
    field('du', due) field('su', ARGV[i + 8])
  elseif kind == 'hold' then
    field('he', ARGV[i + 12])
  elseif kind == 'dead' then
    field('di', now)
  end
  if kind ~= 'release' then row(i, m, due, fields) end
  call('HSET', key, unpack(fields))
  remove(P .. 's:i:' .. m[3], id)
  add(P .. 's:' .. state .. ':' .. m[3], 0, id)
  if m[7] then
    if kind == 'dead' and ARGV[i + 9] == '1' then
      call('HSET', P .. 'k:' .. lane, m[7], 'b' .. id)
    else
      call('HDEL', P .. 'k:' .. lane, m[7])
    end
    if state == 'p' then add(P .. 'o:' .. lane .. m[7], 0, id) end
    heads[#heads + 1] = { lane, m[7] }
    lanes[lane] = true
  elseif state == 'p' and kind ~= 'hold' then
    add(P .. 'l:' .. lane, kind == 'retry' and due or m[9], id)
    lanes[lane] = true
  end
end
local settled = {}
for n, one in ipairs(judged) do
  results[n] = one and 1 or 0
  if one then
    apply(one[1], one[2], one[3])
    local e = P .. 'e:' .. ARGV[one[1] + 1]
    settled[e] = settled[e] or {}
    table.insert(settled[e], ARGV[one[1]])
    touched[e] = true
  end
end
write_sets()
for e, ids in pairs(settled) do many('HDEL', e, ids) end
-- The lease goes with the last message in it.
for e in pairs(touched) do
  if call('HLEN', e) <= 2 then
    call('DEL', e)
    call('ZREM', P .. 'leased', string.sub(e, #P + 3))
  end
end
for _, head in ipairs(heads) do rehead(head[1], head[2]) end
local told = {}
for lane in pairs(lanes) do
  list_lane(lane)
  told[#told + 1] = lane
end
tell_lanes(told)
return { results, told }
`,
);
