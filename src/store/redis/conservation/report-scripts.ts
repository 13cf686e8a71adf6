/**
 * What passes write down: what they found, that one has ended, and how it stands.
 */
import { script } from "../scripts/script.ts";

/** So many passes stay, to be held against a witness. */
const PASSES_KEPT = 5_000;

/**
 * KEYS: `books:found`. After the usual three: scope, 1 where it replaces all of the scope; then place and text of each. What was there before keeps the time at which it was
 * found.
 */
export const WRITE_FOUND = script(
  "write what was found",
  "settles",
  `local key, scope, before = P .. 'books:found', ARGV[4] .. '\\0', {}
local all = call('HGETALL', key)
for n = 1, #all, 2 do
  if sub(all[n], 1, #scope) == scope then before[all[n]] = sub(all[n + 1], 1, 13) end
end
for n = 6, #ARGV, 2 do
  local place = scope .. ARGV[n]
  call('HSET', key, place, (before[place] or stamp) .. ARGV[n + 1])
  before[place] = nil
end
if ARGV[5] == '1' then
  for place in pairs(before) do call('HDEL', key, place) end
end
return call('HLEN', key)
`,
);

/** KEYS: `books`. Ends a pass: it has a number, and where the store stands at that number stays. */
export const NOTE = script(
  "note a pass",
  "settles",
  `local B = P .. 'books'
fits('HLEN', P .. 'books:passes')
local no = call('HINCRBY', B, 'pass', 1)
local b = call('HMGET', B, 'accepted', 'hash', 'seals', 'head')
call('HSET', B, 'passed', stamp)
call('HSET', P .. 'books:passes', no, stamp .. ' ' .. (b[1] or '0') .. ' ' .. (b[2] or '0') .. ' ' .. (b[3] or '0') .. ' ' .. (b[4] or ''))
call('HDEL', P .. 'books:passes', no - ${PASSES_KEPT})
return no
`,
);

/** KEYS: `books`. After the usual three: names and values; `@` is the store's time. A state that is another one has a new `since`. */
export const SET_BOOKS = script(
  "keep how it stands",
  "settles",
  `local B = P .. 'books'
for n = 4, #ARGV, 2 do
  local value = ARGV[n + 1] == '@' and stamp or ARGV[n + 1]
  if ARGV[n] == 'state' and call('HGET', B, 'state') ~= value then call('HSET', B, 'since', stamp) end
  call('HSET', B, ARGV[n], value)
end
return stamp
`,
);

/** KEYS: `books`. Answers with the store's time, the mark of the data, and all that is written there. */
export const READ_BOOKS = script(
  "read how it stands",
  "reads",
  `return { stamp, call('HGET', P .. 'meta', 'born') or '', call('HGETALL', P .. 'books'), call('HGETALL', P .. 'books:found') }
`,
);
