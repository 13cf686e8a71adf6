/**
 * The seeds' port on Redis: the Redis store under the seeds' prefix (FIN-17). It refuses to start while entries of the layout before this one
 * are still there.
 */
import { MakegoodError } from "../../../message/errors.ts";
import { once } from "../../../platform/once.ts";
import type { RedisPort } from "../port.ts";
import { asStoreError } from "../redis-errors.ts";
import { createRedisStore } from "../redis-store.ts";
import type { DLQPort } from "./dlq-store.ts";
import { type PortOptions, portOver } from "./port.ts";

const DLQ_PREFIX = "finn:hounfour:dlq";

export interface RedisDLQStoreOptions extends Omit<PortOptions, "clock" | "nowMs" | "open"> {
  /** Default `finn:hounfour:dlq`; all keys stand under it in one hash tag. */
  readonly prefix?: string | undefined;
  /** Set only by tests and simulation; absent, the server's clock is the authority. */
  readonly now?: (() => number) | undefined;
}

const VOUCHED = { appendonly: "yes", appendfsync: "everysec", "maxmemory-policy": "noeviction" } as const;

export function createRedisDLQStore(redis: RedisPort, options: RedisDLQStoreOptions = {}): DLQPort {
  const { prefix = DLQ_PREFIX, attestedBy, random, now } = options;
  const plain = createRedisStore({ redis, prefix, random, now, attest: attestedBy === undefined ? undefined : VOUCHED });
  // A port and the client on it open it each.
  const open = once(async () => {
    await refuseOldLayout(redis, prefix);
    await plain.open();
  });
  const nowMs = async (): Promise<number> => {
    const [seconds = 0, micros = 0] = now ? [now() / 1_000] : ((await redis.send(null, ["TIME"])) as string[]).map(Number);
    return Math.floor(seconds * 1_000 + micros / 1_000);
  };
  return portOver({ ...plain, open }, { ...options, nowMs });
}

/** A member of the former layout's quarantine, `kind:nonce:id`; those of the store's own layout are plain ids. */
export const FORMER_QUARANTINED = /^[a-z]+:[0-9a-f]+:/;

async function holdsFormer(redis: RedisPort, key: string): Promise<boolean> {
  for (let cursor = "0"; ; ) {
    const reply = await redis.send(key, ["ZSCAN", key, cursor, "MATCH", "*:*:*", "COUNT", "1000"]);
    const [next, flat] = reply as [unknown, unknown[]];
    if (flat.some((one) => FORMER_QUARANTINED.test(String(one)))) return true;
    cursor = String(next);
    if (cursor === "0") return false;
  }
}

/** The roots that the former layout could have: in a hash tag, or the seeds' plain names. */
export const formerRoots = (prefix: string): string[] =>
  prefix.startsWith("{") ? [`${prefix}:`] : [`{${prefix}}:`, `${prefix}:`];

/** DF-29: this store would not see what is owed there, and it would wait for ever. */
async function refuseOldLayout(redis: RedisPort, prefix: string): Promise<void> {
  const roots = formerRoots(prefix);
  const keys = roots.flatMap((root) => ["schedule", "created", "terminals"].map((name) => root + name));
  const fail = (error: unknown) => Promise.reject(asStoreError(error, "dlq EXISTS", false));
  const found: string[] = [];
  // One after the other: a cluster's client that dials a node for the first question refuses a second one until it is there.
  for (const key of keys) if (Number(await redis.send(key, ["EXISTS", key]).catch(fail)) > 0) found.push(key);
  for (const root of roots) if (await holdsFormer(redis, `${root}quarantine`).catch(fail)) found.push(`${root}quarantine`);
  if (found.length === 0) return;
  const what = `Redis holds entries of the layout before this version (${found.join(", ")})`;
  const remedy = `Move them first: makegood import --dlq-port --prefix "${prefix}"`;
  throw new MakegoodError("durable_entries_left", `${what}. ${remedy}`, { found });
}
