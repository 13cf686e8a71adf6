/**
 * The seeds' variables of their Redis streams (AUD-31, REC-31, REC-40), read only for the streams that MAKEGOOD_STREAMS names: on
 * a machine that opens none of them they may belong to another program. Those of the evaluation queue set the topic `recovery/evaluate`, too.
 * Every mistake is reported with the others of the configuration, pairs that cannot work together included (CON-27).
 */
import { z } from "zod";
import * as v from "../../contract/values.ts";
import { LIMITS } from "../../message/limits.ts";
import type { RecoveryStreamSettings } from "../../presets/seed-streams.ts";
import type { StreamsConfig } from "../../presets/streams.ts";
import { RECOVERY_STREAM } from "../../store/redis/streams/seed-names.ts";
import { DAY_MS, matching, readValue, type Settings } from "./settings.ts";

const keyName = matching(/^[\x21-\x7e]{1,200}$/, "a name of 1 to 200 characters without spaces");
const serviceUrl = matching(/^https?:\/\/[^\s?#@]+$/, "a URL that begins with http:// or https://, without credentials");
const delayMs = v.integer(1, 30 * DAY_MS);
/** `host:port`, as the seed has it, or a URL; several of a cluster with commas between them. */
const ADDRESS = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$/;
const isRedisUrl = (url: string): boolean => /^rediss?:\/\/\S+$/.test(url) && URL.canParse(url);
const redisAddress = z
  .string()
  .transform((text) => text.split(",").map((one) => (ADDRESS.test(one.trim()) ? `redis://${one.trim()}` : one.trim())))
  .refine((urls) => urls.every(isRedisUrl), "must be host:port, or a URL that begins with redis:// or rediss://")
  .transform((urls) => urls.join(","));

/** Of the topic, and of the stream where it is opened. */
const TOPIC = {
  M10_CLAIM_IDLE_MS: v.integer(100, 30 * DAY_MS),
  M10_MAX_RECLAIM_ATTEMPTS: v.integer(0, LIMITS.attemptsMax),
  M10_RECLAIM_BASE_BACKOFF_MS: delayMs,
  M10_RECLAIM_MAX_BACKOFF_MS: delayMs,
};
const RECOVERY = {
  M10_STREAM_KEY: keyName,
  M10_CONSUMER_GROUP: keyName,
  M10_DEAD_LETTER_STREAM: keyName,
  M10_STREAM_MAX_LEN: v.integer(1, 1_000_000_000),
};
const AUDIT = { CONSUMER_GROUP: keyName, DATA_STORAGE_URL: serviceUrl };
const ANY = { REDIS_ADDR: redisAddress, CONSUMER_NAME: keyName };
const VARIABLES = { ...ANY, ...AUDIT, ...RECOVERY, ...TOPIC };

type Env = Readonly<Record<string, string | undefined>>;
type Name = keyof typeof VARIABLES;
/** Null: it is set, and wrong. */
export type Variables = { readonly [N in Name]?: z.output<(typeof VARIABLES)[N]> | null };

const namesOf = (...some: object[]): Name[] => some.flatMap((one) => Object.keys(one)) as Name[];

/** Those that mean something in this configuration, each read once. */
export function readVariables({ streams, recovery }: Settings, env: Env, faults: string[]): Variables {
  const opens = (name: string, some: object): Name[] => (streams.includes(name) ? namesOf(some) : []);
  const engine = recovery === "on" || streams.includes("recovery") ? namesOf(TOPIC) : [];
  const wanted = [
    ...(streams.length > 0 ? namesOf(ANY) : []),
    ...opens("audit", AUDIT),
    ...opens("recovery", RECOVERY),
    ...engine,
  ];
  const given = wanted.filter((name) => (env[name] ?? "").trim() !== "");
  // An address may carry a password.
  const read = given.map((name) => [name, readValue(VARIABLES[name], env[name], name, faults, name === "REDIS_ADDR") ?? null]);
  return Object.fromEntries(read) as Variables;
}

/** Variables of the seeds' streams that are set and change nothing here; to be said at start. */
export function unusedVariables({ streams, recovery: engine }: Settings, env: Env): string[] {
  const any = streams.length > 0 ? [] : ["REDIS_ADDR"];
  const recovery = streams.includes("recovery") ? [] : [...namesOf(RECOVERY), ...(engine === "on" ? [] : namesOf(TOPIC))];
  // Takeovers are counted by Redis itself (DR-42): there is no key to name.
  return [...any, ...recovery, "M10_RECLAIM_ATTEMPTS_KEY", "RECOVERY_QUEUE_KEY"].filter((name) => (env[name] ?? "") !== "");
}

/** Null: no stream is opened here. */
export function readStreams(settings: Settings, given: Variables, faults: string[]): StreamsConfig | null {
  const { streams, store, redis_url } = settings;
  if (streams.length === 0) return null;
  const { REDIS_ADDR: redis = redis_url, CONSUMER_NAME: consumerName, CONSUMER_GROUP: group, DATA_STORAGE_URL: url } = given;
  if (redis === null && given.REDIS_ADDR === undefined)
    faults.push("MAKEGOOD_STREAMS opens streams: REDIS_ADDR or REDIS_URL must say in which Redis");
  const audit = streams.includes("audit") ? { group: group ?? undefined, serviceUrl: url ?? null } : null;
  if (audit && store !== "postgres" && url === undefined) {
    const remedy = "use the store postgres, or let DATA_STORAGE_URL name the audit service that gets the records";
    faults.push(`MAKEGOOD_STREAMS opens the audit stream, and MAKEGOOD_STORE ${store} keeps no audit records: ${remedy}`);
  }
  const recovery = streams.includes("recovery") ? recoveryStream(given, faults) : null;
  return { redis: redis ?? "", audit, recovery, consumerName: consumerName ?? undefined };
}

function recoveryStream(given: Variables, faults: string[]): RecoveryStreamSettings {
  const { stream, group, deadStream, reclaimIdleMs, reclaimsMax, reclaimBaseMs, reclaimIdleMsMax } = RECOVERY_STREAM;
  const settings = {
    stream: given.M10_STREAM_KEY ?? stream,
    group: given.M10_CONSUMER_GROUP ?? group,
    // The default is left to the stream's doors: on a cluster it has another name.
    deadStream: given.M10_DEAD_LETTER_STREAM ?? undefined,
    lengthMax: given.M10_STREAM_MAX_LEN ?? undefined,
    reclaimIdleMs: given.M10_CLAIM_IDLE_MS ?? reclaimIdleMs,
    reclaimsMax: given.M10_MAX_RECLAIM_ATTEMPTS ?? reclaimsMax,
    reclaimBaseMs: given.M10_RECLAIM_BASE_BACKOFF_MS ?? reclaimBaseMs,
    reclaimIdleMsMax: given.M10_RECLAIM_MAX_BACKOFF_MS ?? reclaimIdleMsMax,
  };
  const maxMs = settings.reclaimIdleMsMax;
  const below = (variable: string, value: number): void => {
    if (value > maxMs)
      faults.push(`M10_RECLAIM_MAX_BACKOFF_MS (${maxMs}) is below ${variable} (${value}): raise it, or lower the other`);
  };
  below("M10_RECLAIM_BASE_BACKOFF_MS", settings.reclaimBaseMs);
  below("M10_CLAIM_IDLE_MS", settings.reclaimIdleMs);
  if (settings.stream === (settings.deadStream ?? deadStream))
    faults.push("M10_DEAD_LETTER_STREAM is also M10_STREAM_KEY: what died would be read again");
  return settings;
}
