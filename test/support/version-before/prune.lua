#!lua flags=allow-oom
local call, sub, match, ID = redis.call, string.sub, string.match, #ARGV[1] + 3
local P, now, me = ARGV[1], tonumber(ARGV[2]), sub(ARGV[3], 1, 16)
if #ARGV[3] > 16 and call('HGET', P .. 'meta', 'born') ~= sub(ARGV[3], 17) then
  return redis.error_reply('LOSTDATA this is not the data that was here before')
end
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local stamp = string.format('%.0f', now)
-- A command with many arguments, in pieces that fit Lua's stack.
local function many(command, key, list)
  if #list <= 2000 then
    if #list > 0 then call(command, key, unpack(list)) end
    return
  end
  for from = 1, #list, 2000 do
    call(command, key, unpack(list, from, math.min(from + 1999, #list)))
  end
end
-- Reads a key that will be written, once: a wrong type is an error here, before the first write.
local checked = {}
local function fits(command, key)
  local size = checked[key]
  if not size then
    size = call(command, key)
    checked[key] = size
  end
  return size
end
local function zset(key) return fits('ZCARD', key) end
-- Topic, tenant, priority, ordering key (nil: none) and key.
local function head_of(head)
  local topic, tenant, priority, okey, key = match(head, '^([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z([^%z]*)%z')
  return topic, tenant, priority, okey ~= '' and okey or nil, key
end
-- Additions and removals of sorted sets, gathered so that each set is written once.
local added, removed = {}, {}
local function add(key, score, member)
  local list = added[key]
  if not list then list = {} added[key] = list end
  local size = #list
  list[size + 1] = score
  list[size + 2] = member
end
local function remove(key, member)
  local list = removed[key]
  if not list then list = {} removed[key] = list end
  list[#list + 1] = member
end
local function write_sets()
  for key, list in pairs(removed) do many('ZREM', key, list) end
  for key, list in pairs(added) do many('ZADD', key, list) end
  added, removed = {}, {}
end
if ARGV[7] ~= '' then
  local l = call('HMGET', P .. 'leader:' .. ARGV[7], 'owner', 'term', 'until')
  if l[1] ~= ARGV[8] or l[2] ~= ARGV[9] or (tonumber(l[3]) or 0) <= now then return { -1, 0 } end
end
zset(P .. 'settled') zset(P .. 'ended') fits('HLEN', P .. 'dedupe') fits('HLEN', P .. 'pruned')
local kept, longer, looked = tonumber(ARGV[4]), tonumber(ARGV[6]), 0
-- Those that ended and stay longer than the others wait in a set of their own, or they would stand before what goes.
local ids = call('ZRANGEBYSCORE', P .. 'ended', '-inf', now - kept - longer, 'LIMIT', 0, ARGV[5])
local waited = #ids
if #ids < tonumber(ARGV[5]) then
  local more = call('ZRANGEBYSCORE', P .. 'settled', '-inf', now - kept, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[5]) - #ids)
  for n = 1, #more, 2 do
    local state = longer > 0 and redis.pcall('HGET', P .. 'm:' .. more[n], 'st')
    if (state == 'r' or state == 'x') and tonumber(more[n + 1]) > now - kept - longer then
      remove(P .. 'settled', more[n])
      add(P .. 'ended', more[n + 1], more[n])
      looked = looked + 1
    else
      ids[#ids + 1] = more[n]
    end
  end
end
local gone = {}
for n, id in ipairs(ids) do
  local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h')
  gone[n] = m
  if m[1] and m[2] then
    m.topic, m.tenant, m.priority, m.okey, m.key = head_of(m[2])
    zset(P .. 's:' .. m[1] .. ':' .. m.topic)
  end
end
for n, id in ipairs(ids) do
  local m = gone[n]
  call('ZREM', P .. (n <= waited and 'ended' or 'settled'), id)
  -- Only the settled: delivered, resolved, discarded.
  if m.topic and (m[1] == 'd' or m[1] == 'r' or m[1] == 'x') then
    call('UNLINK', P .. 'm:' .. id)
    remove(P .. 's:' .. m[1] .. ':' .. m.topic, id)
    -- The key protects as long as its message lives.
    if m.key ~= '' then
      local scope = m.topic .. '\0' .. m.tenant .. '\0' .. m.key
      if call('HGET', P .. 'dedupe', scope) == id then call('HDEL', P .. 'dedupe', scope) end
    end
    call('HINCRBY', P .. 'pruned', m.topic, 1)
  end
end
write_sets()
return { looked + #ids, #ids }
