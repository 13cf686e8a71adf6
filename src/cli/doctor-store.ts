/**
 * The doctor's look at the store itself: what its server says, and who delivers. It makes nothing: a store that is not there is said to be missing.
 */
import { servedNow } from "../client/standing.ts";
import { errorText } from "../message/errors.ts";
import { unservedTopics } from "../server/health.ts";
import { attestation, storeUrl } from "../server/open-store.ts";
import { createPostgresStore, examinePostgres } from "../store/postgres/index.ts";
import { connectRedis, createRedisStore, examineRedis } from "../store/redis/index.ts";
import { type Examined, examined } from "../store/shared/examined.ts";
import type { Store } from "../store/store.ts";
import { Stop } from "./exit-code.ts";
import { refuseNowhere, warnings } from "./local.ts";
import type { CommandContext } from "./run.ts";

const SHOWN = 20;

export async function checkStore(context: CommandContext): Promise<Examined[]> {
  const { store } = context.config;
  if (store === "memory") return [examined("store", false, "memory: what was accepted is gone when the process ends", "warn")];
  const redis = await checkRedis(context);
  if (store === "redis") return redis;
  // The second rung: what is wrong with it does not stop delivery.
  const second = redis.map((one) => (one.status === "fail" ? { ...one, status: "warn" as const } : one));
  return [...(await checkPostgres(context)), ...second];
}

async function checkRedis({ config }: CommandContext): Promise<Examined[]> {
  if (config.redis_url === null) return [];
  try {
    const port = await connectRedis(config.redis_url);
    try {
      const found = await examineRedis(port, attestation(config.redis_attest));
      if (config.store !== "redis") return found;
      return [...found, ...(await checkDelivery(createRedisStore({ redis: port, prefix: config.redis_prefix })))];
    } finally {
      await port.close();
    }
  } catch (error) {
    return [examined("redis", false, errorText(error))];
  }
}

async function checkPostgres({ io, config, init }: CommandContext): Promise<Examined[]> {
  const undo: (() => Promise<void>)[] = [];
  try {
    if (!init) await refuseNowhere(config);
    const { url, embedded, release } = await storeUrl({ config, log: warnings(io) });
    undo.push(release);
    const { found, usable } = await examinePostgres(url, config.schema, embedded ? "embedded" : undefined);
    if (!usable) return [...found];
    const store = createPostgresStore({ url, schema: config.schema, poolMax: 2 });
    undo.push(() => store.close());
    return [...found, ...(await checkDelivery(store))];
  } catch (error) {
    return [examined("store", false, errorText(error), error instanceof Stop ? "warn" : "fail")];
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}

/** Topics with messages waiting that no worker serves, or that those who would cannot deliver. The store need not be opened for it. */
async function checkDelivery(store: Pick<Store, "counts" | "topics">): Promise<Examined[]> {
  try {
    const [counts, topics, served] = await Promise.all([store.counts(), store.topics.list(), servedNow(store)]);
    const found = unservedTopics({ counts, topics, served });
    if (found.length === 0) return [examined("delivery", true, "every topic with messages waiting is served")];
    const more = found.length - SHOWN;
    const shown = found.slice(0, SHOWN).map(({ topic, code, reason }) => {
      // Nobody at work may be what is wanted just now; a worker that is there and cannot is not.
      return examined("delivery", false, `${topic} is not served: ${code}: ${reason}`, code === "no_worker" ? "warn" : "fail");
    });
    return more > 0 ? [...shown, examined("delivery", false, `and ${more} more topics are not served`, "warn")] : shown;
  } catch (error) {
    return [examined("delivery", false, `could not be looked at: ${errorText(error)}`, "warn")];
  }
}
