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
import type { RecoveryOptions } from "../../recovery/settings.ts";
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

const ANY = { REDIS_ADDR: redisAddress, CONSUMER_NAME: keyName };
const AUDIT = { CONSUMER_GROUP: keyName, DATA_STORAGE_URL: serviceUrl };
const RECOVERY = {
  M10_STREAM_KEY: keyName,
  M10_CONSUMER_GROUP: keyName,
  M10_DEAD_LETTER_STREAM: keyName,
  M10_STREAM_MAX_LEN: v.integer(1, 1_000_000_000),
};
/** Of the topic, and of the stream where it is opened. */
const TOPIC = {
  M10_CLAIM_IDLE_MS: v.integer(100, 30 * DAY_MS),
  M10_MAX_RECLAIM_ATTEMPTS: v.integer(0, LIMITS.attemptsMax),
  M10_RECLAIM_BASE_BACKOFF_MS: delayMs,
  M10_RECLAIM_MAX_BACKOFF_MS: delayMs,
};
type All = typeof ANY & typeof AUDIT & typeof RECOVERY & typeof TOPIC;

/** Those that are set; undefined: and wrong. */
type Variables = { readonly [N in keyof All]?: z.output<All[N]> };

/** What they say of streams and engine, and which are set and change nothing here. */
export function readVariables(settings: Settings, env: Readonly<Record<string, string | undefined>>, faults: string[]) {
  const { streams, recovery } = settings;
  const isSet = (name: string): boolean => (env[name] ?? "").trim() !== "";
  const opens = streams.includes("recovery");
  const spheres = [
    [ANY, streams.length > 0],
    [AUDIT, streams.includes("audit")],
    [RECOVERY, opens],
    [TOPIC, opens || recovery === "on"],
  ] as const;
  const all = spheres.flatMap(([some, means]) =>
    Object.entries<z.ZodType>(some).map(([name, schema]) => ({ name, schema, means })),
  );
  const set = all.filter(({ name }) => isSet(name));
  const read = set.flatMap(({ name, schema, means }) =>
    // An address may carry a password.
    means ? [[name, readValue(schema, env[name], name, faults, name === "REDIS_ADDR")]] : [],
  );
  const given = Object.fromEntries(read) as Variables;
  // The others have names that any program may have.
  const unused = set.flatMap(({ name, means }) => (!means && /^(REDIS_ADDR$|M10_)/.test(name) ? [name] : []));
  // Takeovers are counted by Redis itself (DR-42): there is no key to name.
  const never = ["M10_RECLAIM_ATTEMPTS_KEY", "RECOVERY_QUEUE_KEY"].filter(isSet);
  return {
    streams: streams.length === 0 ? null : streamsOf(settings, given, faults),
    recovery_options: recovery === "off" ? (false as const) : recoveryOptions(settings, given),
    unused_variables: [...unused, ...never],
  };
}

function streamsOf({ streams, store, redis_url }: Settings, given: Variables, faults: string[]): StreamsConfig {
  const { REDIS_ADDR: redis = redis_url, CONSUMER_NAME: consumerName, CONSUMER_GROUP: group } = given;
  if (redis === null && !("REDIS_ADDR" in given))
    faults.push("MAKEGOOD_STREAMS opens streams: REDIS_ADDR or REDIS_URL must say in which Redis");
  const audit = streams.includes("audit") ? { group, serviceUrl: given.DATA_STORAGE_URL ?? null } : null;
  if (audit && store !== "postgres" && !("DATA_STORAGE_URL" in given)) {
    const remedy = "use the store postgres, or let DATA_STORAGE_URL name the audit service that gets the records";
    faults.push(`MAKEGOOD_STREAMS opens the audit stream, and MAKEGOOD_STORE ${store} keeps no audit records: ${remedy}`);
  }
  const recovery = streams.includes("recovery") ? recoveryStream(given, faults) : null;
  return { redis: redis ?? "", audit, recovery, consumerName };
}

function recoveryStream(given: Variables, faults: string[]): RecoveryStreamSettings {
  const { deadStream, ...seed } = RECOVERY_STREAM;
  const settings = {
    stream: given.M10_STREAM_KEY ?? seed.stream,
    group: given.M10_CONSUMER_GROUP ?? seed.group,
    // The default is left to the stream's doors: on a cluster it has another name.
    deadStream: given.M10_DEAD_LETTER_STREAM,
    lengthMax: given.M10_STREAM_MAX_LEN,
    reclaimIdleMs: given.M10_CLAIM_IDLE_MS ?? seed.reclaimIdleMs,
    reclaimsMax: given.M10_MAX_RECLAIM_ATTEMPTS ?? seed.reclaimsMax,
    reclaimBaseMs: given.M10_RECLAIM_BASE_BACKOFF_MS ?? seed.reclaimBaseMs,
    reclaimIdleMsMax: given.M10_RECLAIM_MAX_BACKOFF_MS ?? seed.reclaimIdleMsMax,
  };
  const { reclaimIdleMsMax: maxMs, reclaimBaseMs, reclaimIdleMs } = settings;
  for (const [variable, value] of Object.entries({
    M10_RECLAIM_BASE_BACKOFF_MS: reclaimBaseMs,
    M10_CLAIM_IDLE_MS: reclaimIdleMs,
  }))
    if (value > maxMs)
      faults.push(`M10_RECLAIM_MAX_BACKOFF_MS (${maxMs}) is below ${variable} (${value}): raise it, or lower the other`);
  if (settings.stream === (settings.deadStream ?? deadStream))
    faults.push("M10_DEAD_LETTER_STREAM is also M10_STREAM_KEY: what died would be read again");
  return settings;
}

/** REC-18's variables, and those of the seed's evaluation queue, which is the topic `recovery/evaluate` here. */
function recoveryOptions(settings: Settings, given: Variables): RecoveryOptions {
  const { M10_CLAIM_IDLE_MS: idleMs, M10_MAX_RECLAIM_ATTEMPTS: attempts } = given;
  const { M10_RECLAIM_BASE_BACKOFF_MS: baseMs, M10_RECLAIM_MAX_BACKOFF_MS: maxMs } = given;
  const retries = [attempts, baseMs, maxMs].some((value) => value !== undefined);
  const retry = {
    policy: "recovery-reclaim",
    attemptsMax: attempts === undefined ? attempts : Math.max(1, attempts),
    baseMs,
    maxMs,
  };
  // An idle time below a second is the stream's; a lease is never that short.
  const leaseMs = idleMs && Math.min(Math.max(idleMs, LIMITS.leaseMsMin), LIMITS.leaseMsMax);
  const evaluate = { ...(leaseMs && { leaseMs }), ...(retries && { retry }) };
  return {
    ruleDebug: settings.recovery_rule_debug,
    evaluatorEnabled: settings.recovery_evaluator_enabled,
    autoExecute: settings.recovery_auto_execute,
    minConfidence: settings.recovery_min_confidence,
    ...(leaseMs || retries ? { evaluate } : {}),
  };
}
