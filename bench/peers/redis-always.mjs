// The Redis store on a server that syncs before it answers: survives a power cut.
import { redisStorePeer } from "../lib/redis-store-peer.mjs";

export default redisStorePeer({
  key: "redis-always",
  name: "Redis, always",
  needs: "redis-always",
  settings: "the same on a server with appendfsync always",
  connectionOf: ({ redisAlways }) => redisAlways,
});
