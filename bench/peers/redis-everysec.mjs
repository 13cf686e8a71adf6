// The Redis store on a server that syncs once a second: survives the death of the process.
import { redisStorePeer } from "../lib/redis-store-peer.mjs";

export default redisStorePeer({
  key: "redis-everysec",
  name: "Redis, everysec",
  needs: "redis",
  settings: "the Redis store and the seeds' port on it, node-redis",
  connectionOf: ({ redis }) => redis,
});
