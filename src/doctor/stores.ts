/** The store of a configuration, its second rung, the home of recovery and the Redis of streams. It makes nothing: what is not there is said to be missing. */
import { errorText } from "../message/errors.ts";
import type { Log } from "../observe/log.ts";
import type { Config } from "../server/config/config.ts";
import { attestation, homeSchema, storeUrl } from "../server/open-store.ts";
import { createPostgresStore, examinePostgres } from "../store/postgres/index.ts";
import { connectRedis, createRedisStore, examineRedis, type RedisPort } from "../store/redis/index.ts";
import { type Examined, examined } from "../store/shared/examined.ts";
import { endingSoon } from "./ending-soon.ts";
import { examineTopics } from "./topics.ts";

export interface Looking {
  readonly config: Config;
  readonly log: Log;
  /** Receivers are dialled, too. */
  readonly dials: boolean;
  /** False: what the operator vouches for does not count. */
  readonly attested: boolean;
}

/** Works without it, so what is wrong with it stops no delivery. */
const lesser = (found: readonly Examined[], prefix: string): Examined[] =>
  found.map((one) => ({ ...one, name: `${prefix}${one.name}`, status: one.status === "fail" ? "warn" : one.status }));

export async function examineStores(looking: Looking): Promise<Examined[]> {
  const { config } = looking;
  if (config.store === "memory")
    return [examined("store", false, "memory: what was accepted is gone when the process ends", "warn")];
  const redis = config.redis_url === null ? [] : await examineOneRedis(config.redis_url, looking, config.store === "redis");
  const streams =
    config.streams === null || config.streams.redis === config.redis_url
      ? []
      : await examineOneRedis(config.streams.redis, looking);
  const ofStreams = lesser(streams, "streams ");
  if (config.store === "redis") return [...redis, ...ofStreams, ...(await examineHome(config))];
  return [...(await examineOnPostgres(looking)), ...lesser(redis, ""), ...ofStreams];
}

async function examineOneRedis(url: string, { config, dials, attested }: Looking, isStore = false): Promise<Examined[]> {
  let port: RedisPort | undefined;
  try {
    port = await connectRedis(url);
    const found = await examineRedis(port, attested ? attestation(config.redis_attest) : {});
    if (!isStore) return found;
    const store = createRedisStore({ redis: port, prefix: config.redis_prefix });
    return [...found, ...(await examineTopics(store, dials ? config.sink_allow : null))];
  } catch (error) {
    return [examined("redis", false, errorText(error))];
  } finally {
    await port?.close();
  }
}

async function examineHome(config: Config): Promise<Examined[]> {
  if (config.database_url === null || config.recovery_options === false) return [];
  try {
    const { found } = await examinePostgres(config.database_url, homeSchema(config));
    return lesser(found, "recovery ");
  } catch (error) {
    return [examined("recovery store", false, errorText(error), "warn")];
  }
}

async function examineOnPostgres({ config, log, dials }: Looking): Promise<Examined[]> {
  const undo: (() => Promise<void>)[] = [];
  try {
    const { url, embedded, release } = await storeUrl(config, log);
    undo.push(release);
    const { found, usable } = await examinePostgres(url, config.schema, embedded ? "embedded" : undefined);
    if (!usable) return [...found];
    const store = createPostgresStore({ url, schema: config.schema, poolMax: 2 });
    undo.push(() => store.close());
    const topics = await examineTopics(store, dials ? config.sink_allow : null);
    const ending = endingSoon("the certificate of PostgreSQL", store.traits.certificateEndsMs ?? null);
    return [...found, ...(ending === null ? [] : [examined("certificate", false, ending, "warn")]), ...topics];
  } catch (error) {
    return [examined("store", false, errorText(error))];
  } finally {
    for (const step of undo.reverse()) await step().catch(() => {});
  }
}
