// The limit, not an engine: the smallest queue that one Lua call can be. A message is a hash and a member of one sorted set; a lease
// is a member of another; what was done is unlinked. No deduplication, no fencing, no history, no topics. ioredis, one call per put.
import { Redis } from "ioredis";
import { emptyRedis } from "../lib/redis-server.mjs";
import { sleep } from "../lib/time.mjs";

const batch = 500;
const connections = 2;
const leaseMs = 30_000;

const scripts = {
  put: {
    numberOfKeys: 2,
    lua: `redis.call('HSET', KEYS[1], 'payload', ARGV[1], 'attempts', 0, 'state', 'ready')
return redis.call('ZADD', KEYS[2], ARGV[2], ARGV[3])`,
  },
  putMany: {
    numberOfKeys: 2,
    lua: `local scores = {}
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1] .. ARGV[i], 'payload', ARGV[i + 1], 'attempts', 0, 'state', 'ready')
  scores[i - 1], scores[i] = ARGV[1], ARGV[i]
end
return redis.call('ZADD', KEYS[2], unpack(scores))`,
  },
  // Forgets the batch before and leases the next one.
  cycle: {
    numberOfKeys: 3,
    lua: `local done = {}
for i = 4, #ARGV do done[i - 3] = KEYS[3] .. ARGV[i] end
if #done > 0 then
  redis.call('ZREM', KEYS[2], unpack(ARGV, 4))
  redis.call('UNLINK', unpack(done))
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
if #ids == 0 then return ids end
local reply, leases = {}, {}
for i, id in ipairs(ids) do
  redis.call('HINCRBY', KEYS[3] .. id, 'attempts', 1)
  leases[2 * i - 1], leases[2 * i] = ARGV[2], id
  reply[2 * i - 1], reply[2 * i] = id, redis.call('HGET', KEYS[3] .. id, 'payload')
end
redis.call('ZREM', KEYS[1], unpack(ids))
redis.call('ZADD', KEYS[2], unpack(leases))
return reply`,
  },
};

const [ready, leased, message] = ["raw:ready", "raw:leased", "raw:message:"];

export default {
  key: "raw-redis",
  name: "raw Lua",
  needs: "redis",
  settings: `one EVALSHA per put (HSET + ZADD), ioredis; drain: forget + lease in one script, ${batch} × ${connections} connections`,

  async setup() {},
  reset: ({ redis }) => emptyRedis(redis),
  async afterLoad() {},

  async producer({ redis: connection }) {
    const redis = new Redis({ ...connection, scripts });
    let made = 0;
    return {
      one: (payload) => {
        const id = String(made++);
        return redis.put(message + id, ready, JSON.stringify(payload), Date.now(), id);
      },
      many: (payloads) =>
        redis.putMany(message, ready, Date.now(), ...payloads.flatMap((payload) => [String(made++), JSON.stringify(payload)])),
      close: () => redis.quit(),
    };
  },

  async worker({ redis: connection }, _mode, onMessage) {
    const clients = Array.from({ length: connections }, () => new Redis({ ...connection, scripts }));
    await Promise.all(clients.map((client) => client.ping()));
    let stopped = false;
    const loop = async (client) => {
      let ids = [];
      while (!stopped) {
        const reply = await client.cycle(ready, leased, message, Date.now(), Date.now() + leaseMs, batch, ...ids);
        ids = [];
        for (let i = 0; i < reply.length; i += 2) {
          ids.push(reply[i]);
          onMessage(JSON.parse(reply[i + 1]));
        }
        if (ids.length === 0) await sleep(20);
      }
    };
    let loops = [];
    return {
      async start() {
        loops = clients.map(loop);
      },
      async stop() {
        stopped = true;
        await Promise.all(loops);
        await Promise.all(clients.map((client) => client.quit()));
      },
    };
  },
};
