// The Redis store as a peer of the settlement question, on the server that `connectionOf` names.
import { doors } from "./product.mjs";
import { emptyRedis, redisUrl } from "./redis-server.mjs";

export function redisStorePeer({ key, name, settings, connectionOf, ...rest }) {
  return {
    key,
    name,
    settings,
    ours: true,
    ...rest,
    async setup() {},
    reset: (context) => emptyRedis(connectionOf(context)),
    async afterLoad() {},
    /** A kernel store that is not open yet, and the seeds' port beside it. */
    async openStore(context) {
      const { connectRedis, createRedisDLQStore, createRedisStore } = await doors.redis();
      const port = await connectRedis(redisUrl(connectionOf(context)));
      return { store: createRedisStore({ redis: port }), seedsPort: createRedisDLQStore(port), close: () => port.close() };
    },
  };
}
