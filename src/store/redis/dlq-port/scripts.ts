/**
 * One Lua script per transition of the seeds' port. Every key is declared, the fields of an entry are never re-encoded
 * (DF-24), the time is the server's (DF-26), and each script reads every key it will write before it writes the first, so that a
 * planted key of the wrong type fails it whole.
 */
import { luaScript, type Script } from "../lua.ts";

/** The fields of an entry in the order in which scripts return them. */
export const ENTRY_FIELDS = [
  "reservation_id",
  "tenant_id",
  "actual_cost_micro",
  "trace_id",
  "reason",
  "response_status",
  "attempt_count",
  "next_ms",
  "created_ms",
  "created_at",
] as const;

const PRELUDE = `
local FIELDS = { ${ENTRY_FIELDS.map((field) => `'${field}'`).join(", ")} }
local NUMBERS = { 7, 8, 9 }
local function text(number) return string.format('%.0f', number) end
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
-- The entry's fields; or nil and what is wrong with it.
local function read(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then return nil, 'missing' end
  if kind ~= 'hash' then return nil, 'corrupt' end
  local row = redis.call('HMGET', key, unpack(FIELDS))
  for i = 1, #FIELDS do if not row[i] then return nil, 'corrupt' end end
  for _, i in ipairs(NUMBERS) do if not string.match(row[i], '^%d+$') then return nil, 'corrupt' end end
  return row
end
local function sets(...) for _, key in ipairs({ ... }) do redis.call('ZCARD', key) end end
-- Moves a payload that cannot be read, or a note about one that is gone, out of the way and out of every index.
local function isolate(bad, id, nonce, at, entry, detail, schedule, created, claimed, quarantine)
  local due = redis.call('ZSCORE', schedule, id)
  if bad == 'corrupt' then
    redis.call('RENAME', entry, detail)
  else
    redis.call('HSET', detail, 'reservation_id', id, 'due_ms', due or '')
  end
  redis.call('ZREM', schedule, id)
  redis.call('ZREM', created, id)
  redis.call('ZREM', claimed, id)
  local kind = bad == 'corrupt' and 'corrupt' or 'orphan'
  redis.call('ZADD', quarantine, text(at), kind .. ':' .. nonce .. ':' .. id)
  return kind
end
-- Whether this token may change the entry; without one, whether nobody holds it.
local function holds(entry, token, at)
  if redis.call('TYPE', entry).ok ~= 'hash' then return false end
  local claim = redis.call('HMGET', entry, 'claim_token', 'claim_until')
  if token ~= '' then return claim[1] == token end
  return not claim[1] or tonumber(claim[2]) <= at
end
`;

type Kind = Parameters<typeof luaScript>[1];

export const script = (name: string, kind: Kind, body: string): Script => luaScript(`dlq ${name}`, kind, `${PRELUDE}${body}`);

/** KEYS entry schedule created claimed quarantine terminal terminals conflict corrupt. → { result, corrupt found aside? } */
export const PUT = script(
  "put",
  "grows",
  `
local entry, schedule, created, claimed, quarantine, terminal, terminals, conflict, corrupt = unpack(KEYS)
local at, id = clock(ARGV[1]), ARGV[2]
sets(schedule, created, claimed, quarantine, terminals)
local row, bad = read(entry)
local first = row or read(terminal)
if first then
  if first[2] == ARGV[3] and first[3] == ARGV[4] then return { 'exists' } end
  if redis.call('EXISTS', conflict) == 0 then
    redis.call('HSET', conflict, 'reservation_id', id, 'tenant_id', ARGV[3], 'actual_cost_micro', ARGV[4],
      'trace_id', ARGV[5], 'reason', ARGV[6])
    redis.call('ZADD', quarantine, text(at), 'conflict:' .. ARGV[13] .. ':' .. id)
  end
  return { 'conflict' }
end
local found = ''
if bad == 'corrupt' then
  found = isolate(bad, id, ARGV[14], at, entry, corrupt, schedule, created, claimed, quarantine)
end
local due = ARGV[9] ~= '' and tonumber(ARGV[9]) or at + tonumber(ARGV[10])
local born = ARGV[11] ~= '' and tonumber(ARGV[11]) or at
local target = ARGV[15] == '1' and terminal or entry
redis.call('HSET', target, 'reservation_id', id, 'tenant_id', ARGV[3], 'actual_cost_micro', ARGV[4], 'trace_id', ARGV[5],
  'reason', ARGV[6], 'response_status', ARGV[7], 'attempt_count', ARGV[8], 'next_ms', text(due), 'created_ms', text(born),
  'created_at', ARGV[12])
if ARGV[15] == '1' then
  redis.call('HSET', terminal, 'terminal_reason', ARGV[16], 'terminal_ms', text(at))
  redis.call('ZADD', terminals, text(at), id)
else
  redis.call('ZADD', schedule, text(due), id)
  redis.call('ZADD', created, text(born), id)
end
return { 'created', found }
`,
);

/** KEYS entry → its fields, or what is wrong with it. */
export const GET = script(
  "get",
  "reads",
  `
local row, bad = read(KEYS[1])
return row or { bad }
`,
);

/**
 * KEYS schedule created claimed quarantine, then entry and detail of each id. ARGV now nonce before ids….
 * → per id { id, 'ok' | 'orphan' | 'corrupt', fields? }; an id that has moved on meanwhile is left out (DF-31).
 */
export const READY = script(
  "ready",
  "settles",
  `
local schedule, created, claimed, quarantine = unpack(KEYS, 1, 4)
local at, nonce, limit = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
sets(schedule, created, claimed, quarantine)
if limit > at then limit = at end
local out = {}
for i = 4, #ARGV do
  local id, entry, detail = ARGV[i], KEYS[2 * i - 3], KEYS[2 * i - 2]
  local due = redis.call('ZSCORE', schedule, id)
  if due and tonumber(due) <= limit then
    local row, bad = read(entry)
    if bad then
      out[#out + 1] = { id, isolate(bad, id, nonce, at, entry, detail, schedule, created, claimed, quarantine) }
    elseif holds(entry, '', at) then
      out[#out + 1] = { id, 'ok', row }
    end
  end
end
return out
`,
);

/** KEYS and ARGV as READY, without `before`. → per find { id, 'orphan' | 'corrupt' | 'unscheduled' } */
export const RECONCILE = script(
  "reconcile",
  "settles",
  `
local schedule, created, claimed, quarantine = unpack(KEYS, 1, 4)
local at, nonce = clock(ARGV[1]), ARGV[2]
sets(schedule, created, claimed, quarantine)
local out = {}
for i = 3, #ARGV do
  local id, entry, detail = ARGV[i], KEYS[2 * i - 1], KEYS[2 * i]
  local row, bad = read(entry)
  local due, born = redis.call('ZSCORE', schedule, id), redis.call('ZSCORE', created, id)
  if bad == 'corrupt' or (bad and (due or born)) then
    out[#out + 1] = { id, isolate(bad, id, nonce, at, entry, detail, schedule, created, claimed, quarantine) }
  elseif row and not (due and born) then
    redis.call('ZADD', schedule, 'NX', row[8], id)
    redis.call('ZADD', created, 'NX', row[9], id)
    out[#out + 1] = { id, 'unscheduled' }
  end
end
return out
`,
);

/** KEYS entry schedule created claimed. ARGV now id token. */
export const DELETE = script(
  "delete",
  "settles",
  `
local entry, schedule, created, claimed = unpack(KEYS)
local at, id, token = clock(ARGV[1]), ARGV[2], ARGV[3]
sets(schedule, created, claimed)
if not holds(entry, token, at) then return 0 end
redis.call('DEL', entry)
redis.call('ZREM', schedule, id)
redis.call('ZREM', created, id)
redis.call('ZREM', claimed, id)
return 1
`,
);

/** KEYS created. → { now, created_ms of the oldest or '' } */
export const OLDEST = script(
  "oldest",
  "reads",
  `
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { text(clock(ARGV[1])), first[2] or '' }
`,
);

/** KEYS schedule claimed terminals quarantine. */
export const GAUGES = script(
  "gauges",
  "reads",
  `
local at = text(clock(ARGV[1]))
return { redis.call('ZCARD', KEYS[1]), redis.call('ZCOUNT', KEYS[1], '-inf', at),
  redis.call('ZCOUNT', KEYS[2], '(' .. at, '+inf'), redis.call('ZCARD', KEYS[3]), redis.call('ZCARD', KEYS[4]) }
`,
);

/** KEYS detail… → per key its type and what can be shown of it. */
export const READ_QUARANTINE = script(
  "read-quarantine",
  "reads",
  `
local out = {}
for i = 1, #KEYS do
  local kind = redis.call('TYPE', KEYS[i]).ok
  local shown = {}
  if kind == 'hash' then shown = redis.call('HGETALL', KEYS[i]) end
  if kind == 'string' then shown = { 'value', redis.call('GETRANGE', KEYS[i], 0, 65535) } end
  out[i] = { kind, shown }
end
return out
`,
);
