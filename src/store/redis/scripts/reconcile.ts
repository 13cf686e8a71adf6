/**
 * RECONCILE: what scripts write together comes apart only by another client or a partial restore. These walk over the
 * sets and the messages, a piece at a time, and mend what does not fit, each piece in one script (DF-31, DF-32).
 */
import { script } from "./script.ts";

/** After the usual three: state, topic, id to start behind, how many, and 1 where nothing is to change. Answers with the id reached (empty: the end) and how many were mended. */
export const RECONCILE_SET = script(
  "reconcile a set",
  "settles",
  `local state, topic, after = ARGV[4], ARGV[5], ARGV[6]
local set, looks = P .. 's:' .. state .. ':' .. topic, ARGV[8] == '1'
fits('SCARD', P .. 'lanes') zset(P .. 'quarantine') zset(set) zset(P .. 's:p:' .. topic)
local ids = call('ZRANGEBYLEX', set, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, ARGV[7])
local mended, lanes = 0, {}
local function wait_again(id, lane, okey, due)
  mended = mended + 1
  if looks then return end
  if okey then
    fits_order(lane, okey)
    call('ZADD', P .. 'o:' .. lane .. okey, place_of(id), id)
    rehead(lane, okey)
  else
    zset(P .. 'l:' .. lane)
    call('ZADD', P .. 'l:' .. lane, due, id)
    list_lane(lane)
  end
end
for _, id in ipairs(ids) do
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'he', 'h', 'su', 'du', 'c', 'le', 'n')
  if m.err or not (m[1] and m[3]) or not tonumber(m[8] or '0') or call('HEXISTS', P .. 'm:' .. id, 'p') == 0 then
    if not looks then
      call('ZREM', set, id)
      quarantine(id)
    end
    mended = mended + 1
  elseif m[1] ~= state then
    if not looks then
      call('ZREM', set, id)
      call('ZADD', P .. 's:' .. m[1] .. ':' .. topic, 0, id)
    end
    mended = mended + 1
  else
    local _, tenant, priority, okey = head_of(m[3])
    local lane = lane_of(topic, tenant, priority, m[4], okey)
    lanes[lane] = true
    local waits = okey and P .. 'o:' .. lane .. okey or P .. 'l:' .. lane
    if state == 'p' and (okey or not m[2]) and not call('ZSCORE', waits, id) then
      wait_again(id, lane, okey, m[5] or m[6])
    elseif state == 'i' and (not m[7] or redis.pcall('HEXISTS', P .. 'e:' .. m[7], id) ~= 1) then
      -- In flight without a lease: no token can settle it any more.
      if not looks then
        call('HSET', P .. 'm:' .. id, 'st', 'p', 'du', now)
        call('ZREM', set, id)
        call('ZADD', P .. 's:p:' .. topic, 0, id)
      end
      if not looks and okey and call('HGET', P .. 'k:' .. lane, okey) == 'f' .. id then call('HDEL', P .. 'k:' .. lane, okey) end
      wait_again(id, lane, okey, now)
    end
  end
end
-- A lane that is not listed is never looked at.
if not looks then for lane in pairs(lanes) do list_lane(lane) end end
return { ids[#ids] or '', mended }
`,
);

/** After the usual three: where to go on, how many, and 1 where nothing is to change. Answers with where it came to (0: the end) and how many were mended. */
export const RECONCILE_MESSAGES = script(
  "reconcile messages",
  "settles",
  `local page = call('SCAN', ARGV[4], 'MATCH', P .. 'm:*', 'COUNT', ARGV[5])
local mended = 0
for _, key in ipairs(page[2]) do
  local id = string.sub(key, #P + 3)
  local m = redis.pcall('HMGET', key, 'st', 'h')
  local topic = not m.err and m[1] and m[2] and head_of(m[2])
  if topic and not call('ZSCORE', P .. 's:' .. m[1] .. ':' .. topic, id) then
    if ARGV[6] ~= '1' then
      call('ZADD', P .. 's:' .. m[1] .. ':' .. topic, 0, id)
      if call('HEXISTS', P .. 'accepted', topic) == 0 then call('HINCRBY', P .. 'accepted', topic, 0) end
    end
    mended = mended + 1
  end
end
return { page[1], mended }
`,
);
