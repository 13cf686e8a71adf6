/**
 * RECLAIM in one script: leases that ran out get a new token, so that whoever held them can no longer settle (I4, DF-5), and
 * what was in them comes back for judgement.
 */
import { script } from "./script.ts";

/** After the usual three: owner, lease time, limit, token (a number is added for each lease). */
export const RECLAIM = script(
  "reclaim",
  "settles",
  `local owner, until_ms, reply = ARGV[4], now + tonumber(ARGV[5]), {}
zset(P .. 'leased') zset(P .. 'quarantine')
local expired = call('ZRANGEBYSCORE', P .. 'leased', '-inf', '(' .. now, 'LIMIT', 0, ARGV[6])
local leases = {}
for n, lease in ipairs(expired) do leases[n] = redis.pcall('HGETALL', P .. 'e:' .. lease) end
for n, lease in ipairs(expired) do
  local e, token, open, left = P .. 'e:' .. lease, ARGV[7] .. '-' .. n, leases[n], 0
  for f = 1, open.err and 0 or #open, 2 do
    local id, lane = open[f], open[f + 1]
    if #id > 1 then
      local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'n', 'tp', 'te', 'ke', 'pr', 'ok', 'f', 'ba', 'dt', 'su')
      if m.err or m[1] ~= 'i' then
        call('HDEL', e, id)
        quarantine(id)
      else
        left = left + 1
        reply[#reply + 1] = { id, lane, m[2], m[3], m[4], m[5], m[6], m[7], '', m[8], m[9], m[10], m[11], lease, token }
      end
    end
  end
  if open.err then
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
