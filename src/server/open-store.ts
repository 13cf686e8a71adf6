/** The stores that a configuration names; the embedded server stops with the last process that uses it. */
import type { Log } from "../observe/log.ts";
import { createMemoryStore } from "../store/memory/memory-store.ts";
import { createPostgresStore, type PostgresStoreOptions, startEmbedded } from "../store/postgres/index.ts";
import { type Attestation, createRedisStore } from "../store/redis/index.ts";
import type { Store } from "../store/store.ts";
import type { Config } from "./config/config.ts";

export type OpenedStore = Awaited<ReturnType<typeof openStore>>;

export const nothing = async (): Promise<void> => {};

/** `failed` hears that the embedded server had to move: connections to the old address will not work again. */
export async function storeUrl(config: Config, log: Log, failed?: (reason: string) => void) {
  if (config.database_url !== null) return { url: config.database_url, embedded: false, release: nothing };
  const server = await startEmbedded({
    dataDir: config.data_dir,
    log: (line) => log.info(line),
    onUrlChange: () => failed?.("the embedded PostgreSQL came back at another address"),
  });
  return { url: server.url, embedded: true, release: () => server.close() };
}

/** Its schema is its own: messages of a store in the other one are none of its business. */
export const homeSchema = ({ schema }: Pick<Config, "schema">): string => `${schema.slice(0, 42)}_recovery`;

type Migrate = NonNullable<PostgresStoreOptions["migrate"]>;

/** The store, the second rung where there is one, and beside Redis the home of recovery: none is opened yet. */
export async function openStore(config: Config, log: Log, failed?: (reason: string) => void, migrate: Migrate = "up") {
  const none = { secondary: null, recoveryHome: undefined, release: nothing };
  if (config.store === "memory") return { ...none, store: createMemoryStore() as Store };
  const { schema, redis_url: redis, redis_prefix: prefix, redis_attest, allow_eviction: allowEviction } = config;
  const how = { attest: attestation(redis_attest), allowEviction, onLoss: (message: string) => log.error(message) };
  const onRedis = redis === null ? null : createRedisStore({ redis, prefix, ...how, mustExist: migrate !== "up" });
  if (config.store === "redis" && onRedis) {
    const url = config.recovery_options === false ? null : config.database_url;
    const home = url === null ? undefined : createPostgresStore({ url, schema: homeSchema(config), migrate });
    return { ...none, store: onRedis, recoveryHome: home };
  }
  const { url, release } = await storeUrl(config, log, failed);
  return { ...none, store: createPostgresStore({ url, schema, migrate }) as Store, secondary: onRedis, release };
}

export function attestation(given: readonly string[]): Attestation {
  return Object.fromEntries(given.map((one) => one.split("=") as [string, string]));
}
