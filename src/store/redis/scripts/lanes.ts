/**
 * LANES: those that hold something to claim, each with when its first message is due.
 */
import { script } from "./script.ts";

export const LANES = script(
  "lanes",
  "reads",
  `local reply = { now }
for _, lane in ipairs(call('SMEMBERS', P .. 'lanes')) do
  local first = call('ZRANGE', P .. 'l:' .. lane, 0, 0, 'WITHSCORES')
  if first[2] then
    reply[#reply + 1] = lane
    reply[#reply + 1] = first[2]
  end
end
return reply
`,
);
