/**
 * The scripts of the port that make, use and end a claim, and those that move an entry to the terminal records and back. The
 * token is compared inside the script that changes something, so a holder that was overtaken changes nothing (DF-4, DF-7).
 */
import { ENTRY_FIELDS, script } from "./scripts.ts";

/** The fields of a terminal record in the order in which scripts return them. */
export const TERMINAL_FIELDS = [
  ...ENTRY_FIELDS,
  "terminal_reason",
  "terminal_ms",
  "attempts_before",
  "resolution",
  "resolved_by",
  "resolved_reason",
] as const;

const quoted = (fields: readonly string[]): string => fields.map((field) => `'${field}'`).join(", ");

/** KEYS entry schedule created claimed quarantine detail. ARGV now id leaseMs token nonce. → { 'ok', abandoned, fields } or why not */
export const CLAIM = script(
  "claim",
  "settles",
  `
local entry, schedule, created, claimed, quarantine, detail = unpack(KEYS)
local at, id, token, nonce = clock(ARGV[1]), ARGV[2], ARGV[4], ARGV[5]
sets(schedule, created, claimed, quarantine)
local row, bad = read(entry)
if bad == 'missing' and not redis.call('ZSCORE', schedule, id) then return { 'none' } end
if bad then return { isolate(bad, id, nonce, at, entry, detail, schedule, created, claimed, quarantine) } end
if tonumber(row[8]) > at or not holds(entry, '', at) then return { 'none' } end
local before = redis.call('HMGET', entry, 'claim_token', 'claim_told', 'abandoned')
local abandoned = tonumber(before[3] or '0')
if before[1] and not before[2] then abandoned = abandoned + 1 end
local ends = text(at + tonumber(ARGV[3]))
redis.call('HSET', entry, 'claim_token', token, 'claim_until', ends, 'abandoned', abandoned)
redis.call('HDEL', entry, 'claim_told')
redis.call('ZADD', schedule, ends, id)
redis.call('ZADD', claimed, ends, id)
return { 'ok', abandoned, row }
`,
);

/** KEYS entry schedule claimed. ARGV now id token leaseMs. */
export const EXTEND = script(
  "extend",
  "settles",
  `
local entry, schedule, claimed = unpack(KEYS)
local at, id = clock(ARGV[1]), ARGV[2]
sets(schedule, claimed)
if not holds(entry, ARGV[3], at) then return 0 end
local ends = at + tonumber(ARGV[4])
local due = tonumber(redis.call('HGET', entry, 'next_ms'))
redis.call('HSET', entry, 'claim_until', text(ends))
redis.call('ZADD', schedule, text(math.max(ends, due)), id)
redis.call('ZADD', claimed, text(ends), id)
return 1
`,
);

/** KEYS entry schedule claimed. ARGV now id token. */
export const RELEASE = script(
  "release",
  "settles",
  `
local entry, schedule, claimed = unpack(KEYS)
local at, id = clock(ARGV[1]), ARGV[2]
sets(schedule, claimed)
if not holds(entry, ARGV[3], at) then return 0 end
redis.call('HDEL', entry, 'claim_token', 'claim_until', 'claim_told')
redis.call('ZADD', schedule, redis.call('HGET', entry, 'next_ms'), id)
redis.call('ZREM', claimed, id)
return 1
`,
);

/** KEYS entry schedule. ARGV now id token nextMs delayMs. → the new count, or -1 */
export const INCREMENT = script(
  "increment",
  "settles",
  `
local entry, schedule = unpack(KEYS)
local at, id = clock(ARGV[1]), ARGV[2]
sets(schedule)
if not holds(entry, ARGV[3], at) then return -1 end
local due = text(ARGV[4] ~= '' and tonumber(ARGV[4]) or at + tonumber(ARGV[5]))
local count = redis.call('HINCRBY', entry, 'attempt_count', 1)
redis.call('HSET', entry, 'next_ms', due, 'claim_told', '1')
redis.call('ZADD', schedule, due, id)
return count
`,
);

/** KEYS entry schedule created claimed terminal terminals. ARGV now id token reason. */
export const TERMINAL = script(
  "terminal",
  "settles",
  `
local entry, schedule, created, claimed, terminal, terminals = unpack(KEYS)
local at, id = clock(ARGV[1]), ARGV[2]
sets(schedule, created, claimed, terminals)
if not holds(entry, ARGV[3], at) or redis.call('EXISTS', terminal) == 1 then return 0 end
redis.call('RENAME', entry, terminal)
redis.call('HSET', terminal, 'terminal_reason', ARGV[4], 'terminal_ms', text(at))
redis.call('HDEL', terminal, 'claim_token', 'claim_until', 'claim_told')
redis.call('ZREM', schedule, id)
redis.call('ZREM', created, id)
redis.call('ZREM', claimed, id)
redis.call('ZADD', terminals, text(at), id)
return 1
`,
);

/** KEYS terminal… → the fields of each, or nothing where there is no record. */
export const READ_TERMINAL = script(
  "read-terminal",
  "reads",
  `
local out = {}
for i = 1, #KEYS do
  out[i] = read(KEYS[i]) and redis.call('HMGET', KEYS[i], ${quoted(TERMINAL_FIELDS)}) or {}
end
return out
`,
);

/** KEYS entry schedule created terminal terminals. ARGV now id. */
export const REPLAY_TERMINAL = script(
  "replay-terminal",
  "settles",
  `
local entry, schedule, created, terminal, terminals = unpack(KEYS)
local at, id = clock(ARGV[1]), ARGV[2]
sets(schedule, created, terminals)
local row = read(terminal)
if not row or redis.call('HEXISTS', terminal, 'resolution') == 1 or redis.call('EXISTS', entry) == 1 then return 0 end
redis.call('RENAME', terminal, entry)
redis.call('HINCRBY', entry, 'attempts_before', row[7])
redis.call('HSET', entry, 'attempt_count', '0', 'next_ms', text(at), 'abandoned', '0')
redis.call('HDEL', entry, 'terminal_reason', 'terminal_ms')
redis.call('ZREM', terminals, id)
redis.call('ZADD', schedule, text(at), id)
redis.call('ZADD', created, row[9], id)
return 1
`,
);

/** KEYS terminal terminals. ARGV now id as actor reason keptMs. */
export const RESOLVE_TERMINAL = script(
  "resolve-terminal",
  "settles",
  `
local terminal, terminals = unpack(KEYS)
sets(terminals)
if not read(terminal) or redis.call('HEXISTS', terminal, 'resolution') == 1 then return 0 end
redis.call('HSET', terminal, 'resolution', ARGV[3], 'resolved_by', ARGV[4], 'resolved_reason', ARGV[5])
redis.call('PEXPIRE', terminal, ARGV[6])
redis.call('ZREM', terminals, ARGV[2])
return 1
`,
);
