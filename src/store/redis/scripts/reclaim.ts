/**
 * RECLAIM in one script: leases that ran out get a new token, so that the former holder can no longer settle (I4, DF-5), and
 * what was in them is returned for a decision.
 */
import { script } from "./script.ts";

/** After the usual three: owner, lease time, limit, token (a number is added for each lease), and 1 where nothing is to change. Rows as a claim's, payloads empty, then lease and token. */
export const RECLAIM = script(
  "reclaim",
  "settles",
  `local owner, until_ms, reply = ARGV[4], string.format('%.0f', now + tonumber(ARGV[5])), {}
local looks = ARGV[8] == '1'
if not looks then zset(P .. 'leased') zset(P .. 'quarantine') end
local expired = call('ZRANGEBYSCORE', P .. 'leased', '-inf', '(' .. stamp, 'LIMIT', 0, ARGV[6])
local leases = {}
for n, lease in ipairs(expired) do leases[n] = redis.pcall('HGETALL', P .. 'e:' .. lease) end
for n, lease in ipairs(expired) do
  local e, token, open, left = P .. 'e:' .. lease, looks and '' or ARGV[7] .. '-' .. n, leases[n], 0
  for f = 1, open.err and 0 or #open, 2 do
    local id, lane = open[f], open[f + 1]
    if #id > 1 then
      local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'n', 'h', 'ba', 'dt', 'su')
      if m.err or m[1] ~= 'i' or not m[3] then
        if not looks then
          call('HDEL', e, id)
          quarantine(id)
        end
      else
        left = left + 1
        local su = sub(lane, 1, 1) == 'o' and (m[6] == '1' or m[6] == '2' or m[6] == '4') and m[6]
        local rest = (m[4] or m[5] or su) and (m[4] or '0') .. (m[5] and '|1|' or '|0|') .. (su or '0') or ''
        reply[#reply + 1] = { id, lane, m[2], m[3], '', rest, lease, token }
      end
    end
  end
  if looks then
    -- Left as it is.
  elseif open.err then
    call('ZREM', P .. 'leased', lease)
    quarantine('lease ' .. lease)
  elseif left == 0 then
    call('DEL', e)
    call('ZREM', P .. 'leased', lease)
  else
    call('HSET', e, 't', token, 'o', owner)
    call('ZADD', P .. 'leased', until_ms, lease)
  end
end
return reply
`,
);
