/**
 * INTERVENE in one script: replay, resolve, discard, cancel or reschedule, fenced by revision, with its provenance in the same write.
 */
import { script } from "./script.ts";

/** After the usual three: id, action, actor and reason as JSON, revision (empty: any), for reschedule the delay. */
export const INTERVENE = script(
  "intervene",
  "settles",
  `local id, action, revision = ARGV[4], ARGV[5], ARGV[7]
local key = P .. 'm:' .. id
fits('SCARD', P .. 'lanes') zset(P .. 'settled')
local m = call('HMGET', key, 'st', 'r', 'he', 'h', 'su', 'di', 'vn', 'n', 'g')
local state = m[1]
if not state then return { 'not_found' } end
local topic, tenant, priority, okey = head_of(m[4])
local current = tonumber(m[2]) or 0
if revision ~= '' and tonumber(revision) ~= current then return { 'revision_conflict', current } end
local moves, ends = action == 'reschedule', action == 'discard' or action == 'cancel'
local open = state == 'o' and action ~= 'cancel' and not moves
if state == 'p' then open = ends or (not m[3]) == moves end
if not open then return { 'wrong_state', state } end
local target = (action == 'replay' or moves) and 'p' or (action == 'resolve' and 'r' or 'x')
local before = lane_of(topic, tenant, priority, m[5], okey)
local after = moves and before or lane_of(topic, tenant, priority, '0', okey)
local due = moves and string.format('%.0f', math.floor(now + tonumber(ARGV[8]))) or stamp
zset(P .. 's:' .. state .. ':' .. topic) zset(P .. 's:' .. target .. ':' .. topic)
zset(P .. 'l:' .. before) zset(P .. 'l:' .. after)
if okey then fits_order(after, okey) end

local number = (tonumber(m[7]) or 0) + 1
local fields = { 'st', target, 'r', current + 1, 'vn', number, 'v' .. number, stamp .. '|' .. action .. '|' .. ARGV[6] }
local function field(name, value) fields[#fields + 1] = name fields[#fields + 1] = value end
if action == 'replay' then
  field('g', (tonumber(m[9]) or 0) + 1) field('ba', tonumber(m[8]) or 0) field('su', '0') field('du', stamp)
  call('HDEL', key, 'he', 'di')
elseif moves then
  field('du', due)
else
  if not m[6] then field('di', stamp) end
  call('HDEL', key, 'he')
  add(P .. 'settled', stamp, id)
end
call('HSET', key, unpack(fields))
if okey then
  call('ZREM', P .. 'o:' .. before .. okey, id)
  if call('HGET', P .. 'k:' .. before, okey) == 'b' .. id then call('HDEL', P .. 'k:' .. before, okey) end
  if target == 'p' then call('ZADD', P .. 'o:' .. after .. okey, place_of(id), id) end
else
  call('ZREM', P .. 'l:' .. before, id)
  if target == 'p' then add(P .. 'l:' .. after, due, id) end
end
if state ~= target then
  remove(P .. 's:' .. state .. ':' .. topic, id)
  add(P .. 's:' .. target .. ':' .. topic, 0, id)
end
write_sets()
if okey then rehead(after, okey) end
list_lane(before)
list_lane(after)
-- A replay is due at once, and what was rescheduled may be; a closed head opens its ordering key for the next one.
if target == 'p' or okey then tell('') end
return { 'done', call('HGETALL', key) }
`,
);
