/**
 * TOPICS: one hash for each topic, each change one script. The definition is text made by the caller, in a fixed order, and is
 * compared and returned as it is.
 */
import { script } from "./script.ts";

const READ = `local function read(name)
  return call('HMGET', P .. 't:' .. name, 'definition', 'source', 'revision', 'paused', 'disabled', 'open', 'probe', 'trips', 'reason', 'held', 'rest')
end
local name = ARGV[4]
local key = P .. 't:' .. name
local function changed() tell('topics') end
`;

/** Topic, definition, ordering, source. */
export const PUT_TOPIC = script(
  "put a topic",
  "grows",
  `${READ}fits('SCARD', P .. 'topics')
local known = read(name)
local source = ARGV[7]
if known[1] and source == 'api' and known[2] ~= 'api' then return { 'read_only' } end
local enables = source == 'api' and known[5]
call('HSET', key, 'source', source)
call('SADD', P .. 'topics', name)
if known[1] ~= ARGV[5] or enables then
  call('HSET', key, 'definition', ARGV[5], 'ordering', ARGV[6], 'revision', (tonumber(known[3]) or 0) + 1)
  call('HDEL', key, 'disabled')
  changed()
end
return { 'put', now, read(name) }
`,
);

/** Topic, or empty for all. */
export const READ_TOPICS = script(
  "read topics",
  "reads",
  `${READ}local reply = { now }
for _, one in ipairs(name ~= '' and { name } or call('SMEMBERS', P .. 'topics')) do
  local record = read(one)
  if record[1] then reply[#reply + 1] = record end
end
return reply
`,
);

/** Topic, source. */
export const DELETE_TOPIC = script(
  "delete a topic",
  "settles",
  `${READ}local known = read(name)
if not known[1] then return 'not_found' end
if ARGV[5] == 'api' and known[2] ~= 'api' then return 'read_only' end
for state in string.gmatch('pio', '%a') do
  if call('ZCARD', P .. 's:' .. state .. ':' .. name) > 0 then return 'in_use' end
end
call('SREM', P .. 'topics', name)
call('DEL', key)
changed()
return 'deleted'
`,
);

/** Topic, 1 or 0. */
export const PAUSE_TOPIC = script(
  "pause a topic",
  "settles",
  `${READ}if not read(name)[1] then return {} end
call('HSET', key, 'paused', ARGV[5])
if ARGV[5] == '0' then call('HDEL', key, 'disabled') end
call('HINCRBY', key, 'revision', 1)
changed()
return { now, read(name) }
`,
);

/** Topic, reason. */
export const DISABLE_TOPIC = script(
  "disable a topic",
  "settles",
  `${READ}if not read(name)[1] then return 0 end
call('HSET', key, 'disabled', ARGV[5])
call('HINCRBY', key, 'revision', 1)
changed()
return 1
`,
);

/** Held tenants with their reasons, as one text. */
const HELD = `local held = known[10] and cjson.decode(known[10]) or {}
local function holds()
  local count = 0
  for _ in pairs(held) do count = count + 1 end
  return count
end
local function write_held()
  if next(held) then call('HSET', key, 'held', cjson.encode(held)) else call('HDEL', key, 'held') end
end
`;

/**
 * Topic, cool-down, reason, tenant (empty: the topic), reason of a tenant, how many of those, 1 if by hand. A breaker that is open already is
 * not opened twice by two workers that saw the same failures.
 */
export const TRIP_TOPIC = script(
  "trip a breaker",
  "settles",
  `${READ}local known = read(name)
if not known[1] then return {} end
${HELD}local tenant, open, probe, until_ms = ARGV[7], tonumber(known[6]), tonumber(known[7]), now + tonumber(ARGV[5])
if tenant ~= '' and (open or held[tenant] or holds() < tonumber(ARGV[9])) then
  if not open and not held[tenant] then
    held[tenant] = ARGV[8]
    write_held()
    call('HSET', key, 'probe', math.floor(math.max(probe or 0, until_ms)))
    changed()
  end
elseif not open or ARGV[10] == '1' or (probe or open) <= now or (probe and until_ms > probe) then
  if ARGV[10] == '1' and open and not probe then until_ms = math.max(until_ms, open) end
  call('HSET', key, 'open', math.floor(until_ms), 'reason', ARGV[6], 'trips', (tonumber(known[8]) or 0) + 1)
  call('HDEL', key, 'probe', 'held')
  changed()
end
return { now, read(name) }
`,
);

/** Topic, lease, tenant (empty: the topic), rest (empty: for one that never failed). */
export const PROBE_TOPIC = script(
  "probe a breaker",
  "settles",
  `${READ}local known = read(name)
if not known[1] then return 0 end
${HELD}local tenant, rest = ARGV[6], tonumber(ARGV[7])
if tenant == '' and not known[6] or tenant ~= '' and (known[6] or not held[tenant]) then return 0 end
if now < tonumber(known[7] or known[6] or 0) or rest and now < tonumber(known[11] or 0) then return 0 end
call('HSET', key, 'probe', math.floor(now + tonumber(ARGV[5])))
if rest then call('HSET', key, 'rest', math.floor(now + rest), 'trips', (tonumber(known[8]) or 0) + 1) end
return 1
`,
);

/** Topic, tenant (empty: the topic). */
export const RESET_TOPIC = script(
  "reset a breaker",
  "settles",
  `${READ}local known = read(name)
if not known[1] then return 0 end
${HELD}local tenant = ARGV[5]
if tenant == '' then
  if not (known[6] or known[8] or known[10]) then return 0 end
  held = {}
  call('HDEL', key, 'open', 'reason')
elseif not held[tenant] then
  return 0
else
  held[tenant] = nil
end
write_held()
if tenant == '' or not (known[6] or next(held)) then call('HDEL', key, 'probe', 'rest', 'trips') end
changed()
return 1
`,
);
