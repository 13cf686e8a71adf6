/** The seeds' variables of their Redis streams (AUD-31, REC-31, REC-40, CON-27), read only for those of MAKEGOOD_STREAMS. */
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

type Variables = Readonly<Record<string, readonly [variable: string, schema: z.ZodType]>>;

const ANY = { redis: ["REDIS_ADDR", redisAddress], consumerName: ["CONSUMER_NAME", keyName] } as const;
const AUDIT = { group: ["CONSUMER_GROUP", keyName], serviceUrl: ["DATA_STORAGE_URL", serviceUrl] } as const;
const RECOVERY = {
  stream: ["M10_STREAM_KEY", keyName],
  group: ["M10_CONSUMER_GROUP", keyName],
  deadStream: ["M10_DEAD_LETTER_STREAM", keyName],
  lengthMax: ["M10_STREAM_MAX_LEN", v.integer(1, 1_000_000_000)],
} as const;
const TOPIC = {
  reclaimIdleMs: ["M10_CLAIM_IDLE_MS", v.integer(100, 30 * DAY_MS)],
  reclaimsMax: ["M10_MAX_RECLAIM_ATTEMPTS", v.integer(0, LIMITS.attemptsMax)],
  reclaimBaseMs: ["M10_RECLAIM_BASE_BACKOFF_MS", delayMs],
  reclaimIdleMsMax: ["M10_RECLAIM_MAX_BACKOFF_MS", delayMs],
} as const;

type Given<V extends Variables> = { readonly [M in keyof V]?: z.output<V[M][1]> };

export function readVariables(settings: Settings, env: Readonly<Record<string, string | undefined>>, faults: string[]) {
  const { streams, recovery, store, redis_url } = settings;
  const isSet = (name: string): boolean => (env[name] ?? "").trim() !== "";
  const unused: string[] = [];
  const read = <V extends Variables>(some: V, means: boolean): Given<V> => {
    const set = Object.entries(some).filter(([, [variable]]) => isSet(variable));
    const given = set.map(([member, [variable, schema]]) => {
      // The others have names that any program may have.
      if (!means && /^(REDIS_ADDR$|M10_)/.test(variable)) unused.push(variable);
      // An address may carry a password.
      const value = means ? readValue(schema, env[variable], variable, faults, variable === "REDIS_ADDR") : undefined;
      return [member, value] as const;
    });
    return Object.fromEntries(given.filter(([, value]) => value !== undefined)) as Given<V>;
  };
  const opens = { audit: streams.includes("audit"), recovery: streams.includes("recovery") };
  const { redis = redis_url, consumerName } = read(ANY, streams.length > 0);
  const { group, serviceUrl = null } = read(AUDIT, opens.audit);
  const ofStream = read(RECOVERY, opens.recovery);
  const ofTopic = read(TOPIC, opens.recovery || recovery === "on");
  if (streams.length > 0 && redis === null && !isSet("REDIS_ADDR"))
    faults.push("MAKEGOOD_STREAMS opens streams: REDIS_ADDR or REDIS_URL must say in which Redis");
  if (opens.audit && store !== "postgres" && !isSet("DATA_STORAGE_URL")) {
    const remedy = "use the store postgres, or let DATA_STORAGE_URL name the audit service that gets the records";
    faults.push(`MAKEGOOD_STREAMS opens the audit stream, and MAKEGOOD_STORE ${store} keeps no audit records: ${remedy}`);
  }
  const opened: StreamsConfig = {
    redis: redis ?? "",
    audit: opens.audit ? { group, serviceUrl } : null,
    recovery: opens.recovery ? recoveryStream({ ...ofStream, ...ofTopic }, faults) : null,
    consumerName,
  };
  return {
    streams: streams.length === 0 ? null : opened,
    recovery_options: recovery === "off" ? (false as const) : recoveryOptions(settings, ofTopic),
    // Takeovers are counted by Redis itself (DR-42): there is no key to name.
    unused_variables: [...unused, ...["M10_RECLAIM_ATTEMPTS_KEY", "RECOVERY_QUEUE_KEY"].filter(isSet)],
  };
}

function recoveryStream(given: Given<typeof RECOVERY & typeof TOPIC>, faults: string[]): RecoveryStreamSettings {
  // The default of the dead stream is left to the stream's doors: on a cluster it has another name.
  const { deadStream, sweepMax: _, ...seed } = RECOVERY_STREAM;
  const settings = { ...seed, ...given };
  const { reclaimIdleMsMax: maxMs } = settings;
  for (const member of ["reclaimBaseMs", "reclaimIdleMs"] as const) {
    const fault = `M10_RECLAIM_MAX_BACKOFF_MS (${maxMs}) is below ${TOPIC[member][0]} (${settings[member]})`;
    if (settings[member] > maxMs) faults.push(`${fault}: raise it, or lower the other`);
  }
  if (settings.stream === (settings.deadStream ?? deadStream))
    faults.push("M10_DEAD_LETTER_STREAM is also M10_STREAM_KEY: what died would be read again");
  return settings;
}

/** REC-18's variables, and those of the seed's evaluation queue, which is the topic `recovery/evaluate` here. */
function recoveryOptions(settings: Settings, given: Given<typeof TOPIC>): RecoveryOptions {
  const { reclaimIdleMs: idleMs, reclaimsMax: attempts, reclaimBaseMs: baseMs, reclaimIdleMsMax: maxMs } = given;
  const attemptsMax = attempts === undefined ? attempts : Math.max(1, attempts);
  const retries = [attempts, baseMs, maxMs].some((value) => value !== undefined);
  // An idle time below a second is the stream's; a lease is never that short.
  const leaseMs = idleMs && Math.min(Math.max(idleMs, LIMITS.leaseMsMin), LIMITS.leaseMsMax);
  const retry = { policy: "recovery-reclaim", attemptsMax, baseMs, maxMs };
  const evaluate = { ...(leaseMs && { leaseMs }), ...(retries && { retry }) };
  return {
    ruleDebug: settings.recovery_rule_debug,
    evaluatorEnabled: settings.recovery_evaluator_enabled,
    autoExecute: settings.recovery_auto_execute,
    minConfidence: settings.recovery_min_confidence,
    appVersion: settings.app_version,
    ...(leaseMs || retries ? { evaluate } : {}),
  };
}
