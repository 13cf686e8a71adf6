/**
 * Payloads of one bucket, in pages, for a person who has to know by how much its money differs.
 */
import { script } from "../scripts/script.ts";

/** KEYS: a set of a state. After the usual three: state, topic, bucket, the id to begin after, how many. Answers with the id reached (empty: the end) and the payloads. */
export const READ_MONEY = script(
  "read money",
  "reads",
  `local ids = call('ZRANGEBYLEX', P .. 's:' .. ARGV[4] .. ':' .. ARGV[5], ARGV[7] == '' and '-' or '(' .. ARGV[7], '+', 'LIMIT', 0, ARGV[8])
local reply = { ids[#ids] or '' }
for _, id in ipairs(ids) do
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'q', 'p')
  if m[1] == ARGV[6] and m[2] then reply[#reply + 1] = m[2] end
end
return reply
`,
);
