/**
 * The seeds' port on Redis: the Redis store under the seeds' prefix (FIN-17), and what only Redis has to tell: whether its server keeps what it
 * is given, what is quarantined as unreadable, and whether entries of the layout before this one are still there.
 */
import { errorText, MakegoodError } from "../../../message/errors.ts";
import { once } from "../../../platform/once.ts";
import type { Random } from "../../../platform/random.ts";
import type { Store } from "../../store.ts";
import type { RedisDurability } from "../durability.ts";
import type { Finding } from "../finding.ts";
import type { RedisPort } from "../port.ts";
import { asStoreError } from "../redis-errors.ts";
import { createRedisStore, type RedisStore } from "../redis-store.ts";
import type { DLQPort, DLQStoreOptions, PersistenceCheck } from "./dlq-store.ts";
import { createDLQPort, type PortOptions } from "./port.ts";

export const DLQ_PREFIX = "finn:hounfour:dlq";

export interface RedisDLQStoreOptions extends DLQStoreOptions {
  /** Default `finn:hounfour:dlq`; all keys stand under it in one hash tag. */
  readonly prefix?: string | undefined;
  /** Who vouches that this server persists, where its settings cannot be read; an answer of `failed` is not overruled. */
  readonly attestedBy?: string | undefined;
  readonly random?: Random | undefined;
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

type Given = Omit<PortOptions, "store" | "quarantined" | "validatePersistence"> & Pick<RedisDLQStoreOptions, "attestedBy">;

/** The port over a store that the caller brings. */
export function portOver(store: Store, options: Given): DLQPort {
  if (!isRedisStore(store)) return createDLQPort({ ...options, store });
  return createDLQPort({
    ...options,
    store,
    quarantined: store.quarantined,
    validatePersistence: () => checkPersistence(store, options.attestedBy),
  });
}

export function isRedisStore(store: Store): store is RedisStore {
  return "quarantined" in store && "durability" in store;
}

/** Whether the servers keep what they are given, in the port's three answers (DF-9); a check that cannot be made never passes. */
export async function checkPersistence(store: RedisStore, attestedBy = "the operator"): Promise<PersistenceCheck> {
  const checked: Record<string, string> = {};
  const answer = (state: PersistenceCheck["state"], reason: string, attested: string | null = null) =>
    ({ state, reason, checked, attested }) as const;
  let found: RedisDurability;
  try {
    found = await store.durability();
  } catch (error) {
    return answer("unknown", `nothing could be read: ${errorText(error)}`);
  }
  const findings = found.nodes.flatMap((node) => node.findings);
  for (const { name, value, attested } of findings) if (value !== null && !attested) checked[name] ??= value;
  // Without an append-only file, with eviction, or with a disk that is written whenever the system likes, an entry may be gone.
  const bad = (finding: Finding): boolean => finding.required || finding.name === "appendfsync";
  const failed = findings.filter((finding) => finding.verdict === "failed" && bad(finding));
  if (failed.length > 0) return answer("failed", listed(failed));
  const unknown = findings.filter(({ verdict, required }) => verdict === "unknown" && required);
  if (unknown.length > 0) return answer("unknown", listed(unknown));
  const vouched = findings.filter(({ attested, required }) => attested && required);
  if (vouched.length > 0) return answer("verified", `attested by ${attestedBy}: ${listed(vouched)}`, attestedBy);
  const sync = found.appendfsync ?? "at an interval that could not be read";
  return answer("verified", `appendonly yes, appendfsync ${sync}, maxmemory-policy noeviction`);
}

const listed = (findings: readonly Finding[]): string =>
  [...new Set(findings.map(({ name, value, detail }) => `${name} ${value ?? "unknown"}: ${detail}`))].join("; ");

/** A member of the former layout's quarantine, `kind:nonce:id`; those of the store's own layout are plain ids. */
const FORMER_QUARANTINED = /^[a-z]+:[0-9a-f]+:/;

async function holdsFormer(redis: RedisPort, key: string): Promise<boolean> {
  for (let cursor = "0"; ; ) {
    const reply = await redis.send(key, ["ZSCAN", key, cursor, "MATCH", "*:*:*", "COUNT", "1000"]);
    const [next, flat] = reply as [unknown, unknown[]];
    if (flat.some((one) => FORMER_QUARANTINED.test(String(one)))) return true;
    cursor = String(next);
    if (cursor === "0") return false;
  }
}

/** DF-29: this store would not see what is owed there, and it would wait for ever. */
async function refuseOldLayout(redis: RedisPort, prefix: string): Promise<void> {
  const roots = prefix.startsWith("{") ? [`${prefix}:`] : [`{${prefix}}:`, `${prefix}:`];
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
