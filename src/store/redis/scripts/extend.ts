/**
 * EXTEND in one script: the end of a lease moves only for the token that holds it (I4, DF-4).
 */
import { script } from "./script.ts";

/** After the usual three: the lease time, then lease and token for each claim. */
export const EXTEND = script(
  "extend",
  "settles",
  `local results = {}
zset(P .. 'leased')
for i = 5, #ARGV, 2 do
  local held = call('HGET', P .. 'e:' .. ARGV[i], 't') == ARGV[i + 1]
  results[#results + 1] = held and 1 or 0
end
for i = 5, #ARGV, 2 do
  if results[(i - 3) / 2] == 1 then call('ZADD', P .. 'leased', now + tonumber(ARGV[4]), ARGV[i]) end
end
return results
`,
);
