/**
 * SEAL, RETIRE and what is read of accounts: a bucket in which nothing lives is sealed in a chain, and goes when retention has taken all of it and the sums agree.
 */
import { script } from "../scripts/script.ts";
import { ACCOUNTS, INTAKE } from "./accounts-lua.ts";

/** The fields of an account, in the order of ACCOUNT_FIELDS in hours.ts. */
const FIELDS = "'t', 'te', 'hr', 'mf', 'an', 'ah', 'ab', 'am', 'dn', 'rn', 'xn', 'sh', 'gn', 'gh', 'gb', 'se'";

/** So many seals stay although all that they are of is gone. */
const SEALS_KEPT = 10_000;

/** When all of a sealed bucket went with retention: the account goes, its seal stays. Where the sums differ it is opened for comparison instead. */
export const RETIRE = `local function retire(number)
  local b = call('HMGET', account_of(number), 'se', 'an', 'gn', 'ah', 'gh', 'ab', 'gb', 't', 'te', 'hr')
  if not b[1] or b[2] ~= b[3] then return end
  if b[4] ~= b[5] or b[6] ~= b[7] then
    call('HDEL', account_of(number), 'se')
    call('HSET', account_of(number), 'dn', b[2], 'sh', b[4])
    call('HINCRBY', BOOKS, 'sealed', -1)
    return
  end
  call('DEL', account_of(number))
  call('HDEL', P .. 'books:names', b[8] .. '\\0' .. b[9] .. '\\0' .. b[10])
  local seal = call('HGET', P .. 'books:seals', b[1])
  if seal then call('HSET', P .. 'books:seals', b[1], 'r' .. seal) end
  call('HINCRBY', BOOKS, 'sealed', -1)
  call('HINCRBY', BOOKS, 'buckets', -1)
end
`;

/**
 * KEYS: `books`. After the usual three: bucket, how many were accepted and how many went as the caller has seen it, number of the seal, its text (64 digits
 * of its head, then its words). Answers with 1, or 0: something has changed.
 */
export const SEAL = script(
  "seal",
  "settles",
  `${ACCOUNTS}${RETIRE}fits('HLEN', BOOKS) fits('HLEN', P .. 'books:seals') fits('HLEN', P .. 'books:names')
local number, no = ARGV[4], ARGV[7]
local b = call('HMGET', account_of(number), 'an', 'gn', 'dn', 'rn', 'xn', 'se')
local ended = (tonumber(b[3]) or 0) + (tonumber(b[4]) or 0) + (tonumber(b[5]) or 0)
if b[6] or b[1] ~= ARGV[5] or (b[2] or '0') ~= ARGV[6] or tonumber(b[1]) ~= ended then return 0 end
if (tonumber(call('HGET', BOOKS, 'seals')) or 0) + 1 ~= tonumber(no) then return 0 end
call('HSET', P .. 'books:seals', no, ARGV[8])
call('HSET', BOOKS, 'seals', no, 'head', sub(ARGV[8], 1, 64))
call('HDEL', account_of(number), 'dn', 'rn', 'xn', 'sh')
call('HSET', account_of(number), 'se', no)
call('HINCRBY', BOOKS, 'sealed', 1)
retire(number)
for _ = 1, 2 do
  local tail = whole((tonumber(call('HGET', BOOKS, 'tail')) or 0) + 1)
  local oldest = call('HLEN', P .. 'books:seals') > ${SEALS_KEPT} and call('HGET', P .. 'books:seals', tail)
  if oldest and sub(oldest, 1, 1) == 'r' then
    call('HDEL', P .. 'books:seals', tail)
    call('HSET', BOOKS, 'tail', tail, 'tail_head', sub(oldest, 2, 65))
  end
end
return 1
`,
);

/**
 * KEYS: `books:names`. After the usual three: where to go on, how many. Answers with where it came to (0: the end), the names of buckets into which something is still to be counted,
 * and the accounts: number and fields.
 */
export const READ_ACCOUNTS = script(
  "read accounts",
  "reads",
  `${ACCOUNTS}${INTAKE}local page = call('HSCAN', P .. 'books:names', ARGV[4], 'COUNT', ARGV[5])
local reply, coming, seen = {}, {}, {}
for _, text in ipairs(call('LRANGE', P .. 'intake', 0, -1)) do
  local name = entry_of(text).name
  if not seen[name] then
    seen[name] = true
    coming[#coming + 1] = name
  end
end
for n = 2, #page[2], 2 do
  reply[#reply + 1] = { page[2][n], call('HMGET', account_of(page[2][n]), ${FIELDS}) }
end
return { page[1], coming, reply }
`,
);

/** KEYS: `books:seals`. After the usual three: the seal to begin after, how many. Answers with the seals' texts and their buckets as they are now. */
export const READ_SEALS = script(
  "read seals",
  "reads",
  `${ACCOUNTS}local reply = {}
for no = ARGV[4] + 1, ARGV[4] + ARGV[5] do
  local seal = call('HGET', P .. 'books:seals', whole(no))
  local number = seal and match(seal, '^r?%x+ ([^ ]*) ')
  reply[#reply + 1] = { seal or '', number and call('HMGET', account_of(number), ${FIELDS}) or {} }
end
return reply
`,
);

/** KEYS: `books`. After the usual three: bucket, how many its topic lacks at most. What retention of the version before took is given up; answers with 1 or 0. */
export const FORGIVE = script(
  "forgive",
  "settles",
  `${ACCOUNTS}local number, missing, hash, body = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local topic = call('HGET', account_of(number), 't')
if not topic or (call('HGET', P .. 'pruned', topic) or 0) - (call('HGET', P .. 'books:gone', topic) or 0) < missing then return 0 end
book(number, 'gn', missing) book(number, 'gh', hash) book(number, 'gb', body)
book('', 'archived', missing) book('', 'unadded', missing)
write_books()
call('HINCRBY', P .. 'books:gone', topic, missing)
return 1
`,
);
