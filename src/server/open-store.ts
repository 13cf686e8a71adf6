/**
 * The store that a configuration names: PostgreSQL (the server of DATABASE_URL, else the embedded one of the data directory),
 * Redis or memory. With PostgreSQL a REDIS_URL gives the second rung; with Redis a DATABASE_URL gives recovery its home. The code that opens a store closes it: the embedded server stops
 * with the last process that uses it.
 */
import type { Log } from "../observe/log.ts";
import { createMemoryStore } from "../store/memory/memory-store.ts";
import { createPostgresStore, type PostgresStoreOptions, startEmbedded } from "../store/postgres/index.ts";
import { type Attestation, createRedisStore } from "../store/redis/index.ts";
import type { Store } from "../store/store.ts";
import type { Config } from "./config/config.ts";

export interface OpenedStore {
  /** Not opened yet: createMakegood does that. */
  readonly store: Store;
  /** The second rung, where there is one; not opened yet either. */
  readonly secondary: Store | null;
  /** Where recovery keeps its records beside a store that has none; not opened yet either. */
  readonly recoveryHome?: Store | undefined;
  /** Stops the embedded server if it is ours; the store itself is closed by the code that opened it. */
  release(): Promise<void>;
}

export interface StoreOptions {
  readonly config: Config;
  readonly log: Log;
  /** Hears that the embedded server had to move: connections to the old address will not work again. */
  readonly failed?: ((reason: string) => void) | undefined;
  /** What opening may do to a store that is not as this release wants it. */
  readonly migrate?: PostgresStoreOptions["migrate"];
}

const nothing = async (): Promise<void> => {};

export async function storeUrl({ config, log, failed }: StoreOptions) {
  if (config.database_url !== null) return { url: config.database_url, embedded: false, release: nothing };
  const server = await startEmbedded({
    dataDir: config.data_dir,
    log: (line) => log.info(line),
    onUrlChange: () => failed?.("the embedded PostgreSQL came back at another address"),
  });
  return { url: server.url, embedded: true, release: () => server.close() };
}

export async function openStore(options: StoreOptions): Promise<OpenedStore> {
  const { config, migrate } = options;
  if (config.store === "memory") return { store: createMemoryStore(), secondary: null, release: nothing };
  const redis = config.redis_url === null ? null : redisStore(config.redis_url, options);
  if (config.store === "redis" && redis)
    return { store: redis, secondary: null, recoveryHome: recoveryHome(options), release: nothing };
  const { url, release } = await storeUrl(options);
  return { store: createPostgresStore({ url, schema: config.schema, migrate }), secondary: redis, release };
}

/** Its schema is its own: messages of a store in the other one are none of its business. */
export const homeSchema = ({ schema }: Pick<Config, "schema">): string => `${schema.slice(0, 42)}_recovery`;

function recoveryHome({ config, migrate }: StoreOptions): Store | undefined {
  const { database_url: url, recovery_options } = config;
  if (url === null || recovery_options === false) return undefined;
  return createPostgresStore({ url, schema: homeSchema(config), migrate });
}

function redisStore(redis: string, { config, log, migrate = "up" }: StoreOptions): Store {
  const { redis_prefix: prefix, redis_attest, allow_eviction: allowEviction } = config;
  const how = { attest: attestation(redis_attest), allowEviction, onLoss: (message: string) => log.error(message) };
  return createRedisStore({ redis, prefix, ...how, mustExist: migrate !== "up" });
}

/** `appendonly=yes` and the like, as the settings have checked them. */
export function attestation(given: readonly string[]): Attestation {
  return Object.fromEntries(given.map((one) => one.split("=") as [string, string]));
}
