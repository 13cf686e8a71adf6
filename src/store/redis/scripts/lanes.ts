/**
 * LANES: those that hold something to claim, each with when its first message is due. All in one look while they are few; very many are named
 * in pieces first and then asked about in pieces, because Redis does nothing else while a script runs.
 */
import { script } from "./script.ts";

/** How many one script looks at. */
export const LANES_PIECE = 1_000;

/** A lane and when its first message is due; with how many are due behind it, where that is asked for. */
const SAY = `local function say(reply, lane, counted)
  local first = call('ZRANGE', P .. 'l:' .. lane, 0, 0, 'WITHSCORES')[2]
  if not first then return end
  reply[#reply + 1] = lane
  reply[#reply + 1] = counted == '1' and first .. ' ' .. call('ZCOUNT', P .. 'l:' .. lane, '-inf', stamp) or first
end
`;

/** After the usual three: 1 to count. Answers with the time, lanes and their moments; with nothing at all where there are more than a piece. */
export const LANES = script(
  "lanes",
  "reads",
  `if call('SCARD', P .. 'lanes') > ${LANES_PIECE} then return {} end
${SAY}local reply = { now }
for _, lane in ipairs(call('SMEMBERS', P .. 'lanes')) do say(reply, lane, ARGV[4]) end
return reply
`,
);

/** After the usual three: a cursor. Answers with the next one and names; some may come twice. */
export const LANE_NAMES = script("lanes", "reads", `return call('SSCAN', P .. 'lanes', ARGV[4], 'COUNT', ${LANES_PIECE})\n`);

/** After the usual three: 1 to count, lanes. Answers as LANES does. */
export const LANES_NAMED = script(
  "lanes",
  "reads",
  `${SAY}local reply = { now }
for n = 5, #ARGV do say(reply, ARGV[n], ARGV[4]) end
return reply
`,
);
