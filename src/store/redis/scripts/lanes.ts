/**
 * LANES: those that hold something to claim, each with when its first message is due. All in one look while they are few; very many are named
 * in pieces first and then asked about in pieces, because Redis does nothing else while a script runs.
 */
import { script } from "./script.ts";

/** How many one script looks at. */
export const LANES_PIECE = 1_000;

/** Answers with the time, lanes and their moments; with nothing at all where there are more than a piece. */
export const LANES = script(
  "lanes",
  "reads",
  `if call('SCARD', P .. 'lanes') > ${LANES_PIECE} then return {} end
local reply = { now }
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

/** After the usual three: a cursor. Answers with the next one and names; some may come twice. */
export const LANE_NAMES = script("lanes", "reads", `return call('SSCAN', P .. 'lanes', ARGV[4], 'COUNT', ${LANES_PIECE})\n`);

/** After the usual three: lanes. Answers as LANES does. */
export const LANES_NAMED = script(
  "lanes",
  "reads",
  `local reply = { now }
for n = 4, #ARGV do
  local first = call('ZRANGE', P .. 'l:' .. ARGV[n], 0, 0, 'WITHSCORES')
  if first[2] then
    reply[#reply + 1] = ARGV[n]
    reply[#reply + 1] = first[2]
  end
end
return reply
`,
);
