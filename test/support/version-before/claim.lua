#!lua flags=allow-oom
local P, now, me = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local call, sub, match, ID = redis.call, string.sub, string.match, #ARGV[1] + 3
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
local function topic_of(lane) return match(lane, '^[^:]*:[^:]*:([^:]*):') end
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
local function list_lane(lane)
  if call('EXISTS', P .. 'l:' .. lane) == 1 then
    call('SADD', P .. 'lanes', lane)
  else
    call('SREM', P .. 'lanes', lane)
  end
end
-- Reads what rehead() will write.
local function fits_order(lane, okey)
  fits('SCARD', P .. 'lanes')
  zset(P .. 'l:' .. lane)
  zset(P .. 'o:' .. lane .. okey)
  fits('HLEN', P .. 'k:' .. lane)
end
-- What cannot be read is set aside where people can find it, instead of standing in the way of all others.
local function quarantine(id) call('ZADD', P .. 'quarantine', stamp, id) end
local owner, lease_ms, bytes, lease, token = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
fits('SCARD', P .. 'lanes') zset(P .. 'leased')
local taken, size, full, infos = {}, 0, false, {}
local function info_of(lane)
  local info = infos[lane]
  if not info then
    local topic = topic_of(lane)
    info = { line = P .. 'l:' .. lane, pending = P .. 's:p:' .. topic, flying = P .. 's:i:' .. topic, ordered = sub(lane, 1, 1) == 'o' }
    zset(info.line) zset(info.pending) zset(info.flying)
    infos[lane] = info
  end
  return info
end
local function take(id, lane, m)
  size = size + #m[3]
  -- At least one, or a message larger than the budget would never be claimed by anybody.
  if bytes and size > bytes and #taken > 0 then
    full = true
    return
  end
  local info = info_of(lane)
  m.id, m.lane, m.info = id, lane, info
  if info.ordered then
    local _, _, _, okey = head_of(m[2])
    fits_order(lane, okey)
    m.okey = okey
  end
  taken[#taken + 1] = m
end
local lost, cuts = {}, {}
for i = 9, #ARGV, 2 do
  local lane = ARGV[i]
  local line = P .. 'l:' .. lane
  local ids, before = full and {} or call('ZRANGEBYSCORE', line, '-inf', stamp, 'LIMIT', 0, ARGV[i + 1]), #taken
  for _, id in ipairs(ids) do
    local m = redis.pcall('HMGET', P .. 'm:' .. id, 'st', 'h', 'p', 'n', 'ba', 'dt')
    if m.err or m[1] ~= 'p' or not (m[2] and m[3]) then
      zset(P .. 'quarantine')
      lost[#lost + 1] = { line, id, lane }
    elseif not full then
      m.number = (i - 9) / 2
      take(id, lane, m)
    end
  end
  -- All that was seen was taken: it leaves from the front in one cut.
  if #ids > 0 and #taken == before + #ids then
    for n = before + 1, #taken do taken[n].cut = true end
    cuts[line] = #ids
  end
end
-- A lane names what is not there, or what is not waiting: never silently dropped (DF-1, DF-31).
for _, one in ipairs(lost) do
  call('ZREM', one[1], one[2])
  quarantine(one[2])
  list_lane(one[3])
end
for line, count in pairs(cuts) do call('ZREMRANGEBYRANK', line, 0, count - 1) end
if #taken == 0 then return {} end
local reply, open, last = {}, { 't', token, 'o', owner }, 0
for n, m in ipairs(taken) do
  local id, info, attempt = m.id, m.info, '1'
  if m[4] and m[4] ~= '0' then attempt = string.format('%.0f', m[4] + 1) end
  call('HSET', P .. 'm:' .. id, 'st', 'i', 'n', attempt, 'le', lease)
  if not m.cut then remove(info.line, id) end
  remove(info.pending, id)
  add(info.flying, '0', id)
  if m.okey then
    call('ZREM', P .. 'o:' .. m.lane .. m.okey, id)
    call('HSET', P .. 'k:' .. m.lane, m.okey, 'f' .. id)
  end
  open[2 * n + 3], open[2 * n + 4] = id, m.lane
  reply[last + 1], reply[last + 2], reply[last + 3], reply[last + 4], reply[last + 5] = id, m.number or m.lane, attempt, m[2], m[3]
  reply[last + 6] = (m[5] or m[6]) and (m[5] or '0') .. (m[6] and '|1' or '|0') or ''
  last = last + 6
end
write_sets()
many('HSET', P .. 'e:' .. lease, open)
call('ZADD', P .. 'leased', string.format('%.0f', now + lease_ms), lease)
for lane in pairs(infos) do list_lane(lane) end
return reply
