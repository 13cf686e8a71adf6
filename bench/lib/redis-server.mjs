// What every peer on Redis needs: its address, an empty server that is at rest, and how long scripts have run on it.
import { Redis } from "ioredis";
import { sleep } from "./time.mjs";

export const redisUrl = ({ host, port, password }) => `redis://:${password}@${host}:${port}`;

async function withClient(connection, use) {
  const redis = new Redis(connection);
  try {
    return await use(redis);
  } finally {
    await redis.quit();
  }
}

/** Waits for a rewrite of the append-only file: it would take CPU from the next measurement. */
export function emptyRedis(connection) {
  return withClient(connection, async (redis) => {
    await redis.flushall();
    while (/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info("persistence"))) await sleep(50);
  });
}

/** Microseconds that the server has spent in scripts so far: says what a message costs it, however busy the machine is. */
export function scriptUs(connection) {
  return withClient(connection, async (redis) => {
    const lines = (await redis.info("commandstats")).matchAll(/^cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/gm);
    return [...lines].reduce((sum, [, us]) => sum + Number(us), 0);
  });
}
