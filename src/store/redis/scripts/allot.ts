/**
 * ALLOT and OCCUPY: what all workers share of a topic's rate and of its places, each call one script. Both also run when Redis is full,
 * because delivering is what empties it.
 */
import { script } from "./script.ts";

/**
 * KEYS: a bucket for each that is wanted. After the usual three: how long an unused bucket is kept, how late a caller may be; for each
 * bucket its rate, its burst, the amount. Answers with what was granted and the milliseconds to the next one, as texts.
 */
export const ALLOT = script(
  "allot starts",
  "settles",
  `local reply, late = {}, tonumber(ARGV[5])
for n, key in ipairs(KEYS) do
  local rate, burst, amount = tonumber(ARGV[3 + 3 * n]), tonumber(ARGV[4 + 3 * n]), tonumber(ARGV[5 + 3 * n])
  local m = call('HMGET', key, 'n', 'at')
  local at = tonumber(m[2]) or now
  local there = math.min(burst, (tonumber(m[1]) or burst) + math.max(0, now - at) * rate / 1000)
  local granted = amount
  if amount >= 0 then granted = math.min(amount, math.floor(math.max(0, there) + 1e-6)) end
  local left = math.min(burst, there - granted)
  if now >= at - late then at = math.max(at, now) else at = now end
  call('HSET', key, 'n', string.format('%.9f', left), 'at', string.format('%.0f', at))
  call('PEXPIRE', key, ARGV[4])
  reply[2 * n - 1] = string.format('%.0f', granted)
  reply[2 * n] = string.format('%.3f', math.max(0, (1 - 1e-6 - left) / rate * 1000))
end
return reply
`,
);

/** KEYS: the owners of each topic. After the usual three: owner, time; for each topic its total and what is wanted. */
export const OCCUPY = script(
  "occupy slots",
  "settles",
  `local owner, ends, reply = ARGV[4], string.format('%.0f', now + tonumber(ARGV[5])), {}
for n, key in ipairs(KEYS) do
  local total, wants, others, last = tonumber(ARGV[4 + 2 * n]), tonumber(ARGV[5 + 2 * n]), 0, 0
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    local held, untilMs = match(all[i + 1], '^(%d+) (%d+)$')
    if not held or tonumber(untilMs) <= now then call('HDEL', key, all[i])
    elseif all[i] ~= owner then
      others = others + tonumber(held)
      last = math.max(last, tonumber(untilMs))
    end
  end
  local held = math.max(0, math.min(wants, total - others))
  if held > 0 then
    call('HSET', key, owner, string.format('%.0f', held) .. ' ' .. ends)
    last = math.max(last, tonumber(ends))
  else
    call('HDEL', key, owner)
  end
  -- Long after the last of them is over the key is of no use; a test's moment may be far from the server's.
  if last > now then call('PEXPIRE', key, string.format('%.0f', math.max(60000, last - now + 60000))) end
  reply[n] = held
end
return reply
`,
);
