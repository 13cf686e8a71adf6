/**
 * The Lua of accounts. `intake` lists what was accepted and is not counted in yet; `books` says how far it has come and has the totals; `books:b:<number>`
 * is the account of one bucket, `books:names` has their numbers; `books:open` has what is accepted and not seen settled, by id.
 */

/**
 * Sums of hashes of ids, and of ids with payloads, are taken modulo 2^52, which Lua's numbers add exactly. Fields of a bucket: t topic, te tenant,
 * hr hour in seconds, mf money field; an, ah, ab, am accepted: number, ids, payloads, money; dn, rn, xn delivered, resolved, discarded; sh the ids
 * of these; gn, gh, gb went with retention; se the number of its seal.
 */
export const ACCOUNTS = `local WRAP, OPEN, BOOKS = 4503599627370496, P .. 'books:open', P .. 'books'
local function hashed(text) return tonumber(sub(redis.sha1hex(text), 1, 13), 16) end
local function whole(number) return string.format('%.0f', number) end
local function account_of(number) return P .. 'books:b:' .. number end
local changes = {}
local function book(number, field, amount)
  local of = changes[number]
  if not of then of = {} changes[number] = of end
  of[field] = ((of[field] or 0) + amount) % WRAP
end
-- The empty number is all of them.
local function write_books()
  for number, of in pairs(changes) do
    local key, names, values = number == '' and BOOKS or account_of(number), {}, {}
    for name in pairs(of) do names[#names + 1] = name end
    local before = call('HMGET', key, unpack(names))
    for n, name in ipairs(names) do
      values[2 * n - 1], values[2 * n] = name, whole(((tonumber(before[n]) or 0) + of[name]) % WRAP)
    end
    call('HSET', key, unpack(values))
  end
end
local ENDED = { d = { 'dn', 'delivered' }, r = { 'rn', 'resolved' }, x = { 'xn', 'discarded' } }
local function book_ended(number, state, hash)
  book(number, ENDED[state][1], 1) book(number, 'sh', hash) book('', ENDED[state][2], 1)
end
-- What is remembered of an open id: its number of a bucket, hash of the payload and money; nil: it is not open.
local function open_of(id)
  local member = call('ZRANGEBYLEX', OPEN, '[' .. id .. '|', '(' .. id .. '}', 'LIMIT', 0, 1)[1]
  if not member then return nil end
  local number, body, money = match(member, '^[^|]*|([^|]*)|([^|]*)|(.*)$')
  return { number = number, body = body, money = money, member = member }
end
`;

/** What an entry of the intake says. `more` is all of its ids. */
export const INTAKE = `local function entry_of(text)
  local topic, tenant, moment, more = match(text, '^([^%z]*)%z([^%z]*)%z(%d+)%z(.*)$')
  local hour = whole(math.floor(tonumber(moment) / 3600000) * 3600)
  return { topic = topic, tenant = tenant, hour = hour, name = topic .. '\\0' .. tenant .. '\\0' .. hour, more = more }
end
`;
