/** Every setting, once: its name in the config file, its variable, what it may be, its default; and the variables of the seeds. */
import { z } from "zod";
import { check } from "../../contract/faults.ts";
import * as v from "../../contract/values.ts";
import { ARCHIVED_CLASSES, RETENTION_DAYS as KEPT } from "../../maintenance/retention-classes.ts";
import { DEFAULTS, LIMITS } from "../../message/limits.ts";
import { LOG_LEVELS } from "../../observe/log.ts";
import type { RecoveryStreamSettings } from "../../presets/seed-streams.ts";
import type { StreamsConfig } from "../../presets/streams.ts";
import { CONFIDENCE_GATES } from "../../recovery/confidence/gates.ts";
import type { RecoveryOptions } from "../../recovery/settings.ts";
import { parseCidr } from "../../sink/address.ts";
import { RECOVERY_STREAM } from "../../store/redis/streams/seed-names.ts";
import { textValue } from "../json/wire.ts";

/** A secret is also read from the file that `<env>_FILE` names, and never repeated. What is about the caller is not in the file. */
type Traits = { readonly secret?: boolean; readonly inFile?: boolean };
const setting = <S extends z.ZodType, const F>(env: string, schema: S, fallback: F, about: string, traits: Traits = {}) => ({
  ...{ env, schema, fallback, about },
  ...(traits as Traits),
});
export type Setting = ReturnType<typeof setting<z.ZodType, unknown>>;
const SECRET = { secret: true };
const CALLER = { inFile: false };
const NONE: readonly string[] = [];

const matching = (form: RegExp, what: string) => z.string(`must be ${what}`).regex(form, `must be ${what}`);
const some = (isOne: (text: string) => boolean, what: string) => z.array(z.string(what).refine(isOne, what), what);
const text = z.string("must be text");

const HOST = /^(\[?[0-9a-fA-F:.]+\]?|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)$/;
export const DAY_MS = 86_400_000;
/** Seven years. */
export const AUDIT_KEPT_DAYS = 2_557;

const hostNames = some((one) => HOST.test(one), "not a host name");
const streams = some((one) => one === "audit" || one === "recovery", "not one of audit, recovery");
const sealKey = matching(/^.{16,}$/s, "at least 16 characters");
const despite = v.oneOf(["despite-durable-entries"]);
const postgresUrl = matching(/^postgres(ql)?:\/\/\S+$/, "a URL that begins with postgres:// or postgresql://");
const redisUrl = matching(/^rediss?:\/\/\S+$/, "a URL that begins with redis:// or rediss://");
const redisPrefix = matching(/^[A-Za-z0-9_.:-]{1,100}$/, "letters, digits and . _ : -, at most 100");
/** What an operator may vouch for where Redis does not let us look. */
const ATTESTED = /^(appendonly=yes|appendfsync=(always|everysec)|maxmemory-policy=noeviction)$/;
const notAttested = "not appendonly=yes, appendfsync=always|everysec or maxmemory-policy=noeviction";
const attested = some((one) => ATTESTED.test(one), notAttested);
const eviction = matching(/^(allkeys|volatile)-[a-z]+$/, "the eviction policy that is allowed, such as allkeys-lru");
const schemaWords = "lower-case letters, digits and _, at most 51, not beginning with pg_";
const schemaName = matching(/^(?!pg_)[a-z_][a-z0-9_]{0,50}$/, schemaWords);
const ranges = some((one) => parseCidr(one) !== null, "not a CIDR range such as 10.0.0.0/8");
const serverUrl = matching(/^https?:\/\/[^\s/?#@]+\/?$/, "http://host:port, without a path");
/** One text, or in the file a list. */
const tokens = z.union([text, z.array(text).transform((all) => all.join(","))], "must be text or a list of texts");
const days = "must be a number above 0 and at most 36500";
const keptDays = z.number(days).gt(0, days).max(36_500, days);
const wholeDays = v.integer(1, 36_500);
const foreverWords = "must be forever, or a whole number of days from 1 to 36500";
const forever = z.union([z.literal("forever"), wholeDays, text.transform(Number).pipe(wholeDays)], foreverWords);
/** Also as the seeds' programs spelled it: True, 1. */
const flag = z.union([z.boolean(), z.stringbool({ truthy: ["true", "1"], falsy: ["false", "0"] })], "must be true or false");
const { concurrency, pollMs, drainMs, deliveredKeptMs, deadLettersMax } = DEFAULTS;
const someDead = v.integer(0, 1_000_000_000);
const archivePlace = matching(
  /^(table|off|file:\/?\S.*|https?:\/\/\S+)$/,
  "table, off, file:/a/directory or the URL of a receiver",
);
const isArchived = (one: string): boolean => (ARCHIVED_CLASSES as readonly string[]).includes(one);
const archiveClasses = some(isArchived, `not one of ${ARCHIVED_CLASSES.join(", ")}`);
const payloadBytes = v.integer(1, LIMITS.payloadBytesMax);
const journalBytes = v.integer(4_096, 1_099_511_627_776);
const engines = ["postgres", "redis", "memory"] as const;

export const SETTINGS = {
  port: setting("MAKEGOOD_PORT", v.integer(0, 65_535), 4_600, "where the API listens; 0: any free port"),
  host: setting("MAKEGOOD_HOST", matching(HOST, "an address or a host name"), "127.0.0.1", "on which address"),
  hosts: setting("MAKEGOOD_HOSTS", hostNames, NONE, "other names that callers use for it"),
  probe_port: setting(
    "MAKEGOOD_PROBE_PORT",
    v.integer(0, 65_535),
    null,
    "probes and metrics on a port of their own, also of work",
  ),
  probe_host: setting("MAKEGOOD_PROBE_HOST", matching(HOST, "an address or a host name"), "127.0.0.1", "on which address"),
  data_dir: setting("MAKEGOOD_DATA_DIR", text, "./.makegood", "where the embedded PostgreSQL keeps its data"),
  database_url: setting("DATABASE_URL", postgresUrl, null, "PostgreSQL elsewhere; with redis: the home of recovery", SECRET),
  store: setting("MAKEGOOD_STORE", v.oneOf(engines), "postgres", "where messages are kept"),
  redis_url: setting("REDIS_URL", redisUrl, null, "Redis: the store, or with postgres the second rung of deliver()", SECRET),
  redis_prefix: setting("MAKEGOOD_REDIS_PREFIX", redisPrefix, "makegood", "what its keys in Redis begin with"),
  redis_attest: setting("MAKEGOOD_REDIS_ATTEST", attested, NONE, "what the operator vouches for where Redis does not say"),
  allow_eviction: setting("MAKEGOOD_ALLOW_EVICTION", eviction, null, "an eviction policy of Redis that is accepted"),
  streams: setting("MAKEGOOD_STREAMS", streams, NONE, "Redis streams that are emptied here"),
  journal_dir: setting("MAKEGOOD_JOURNAL_DIR", text, null, "the third rung of deliver(): a directory on a local disk"),
  journal_bytes_max: setting("MAKEGOOD_JOURNAL_BYTES_MAX", journalBytes, 268_435_456, "how large the journal may become"),
  seal_key: setting("MAKEGOOD_SEAL_KEY", sealKey, null, "seals what the journal and the ERROR log keep", SECRET),
  mask_fields: setting("MAKEGOOD_MASK_FIELDS", z.array(text), NONE, "members that are masked in the last log of a payload"),
  allow_memory: setting("MAKEGOOD_ALLOW_MEMORY", despite, null, "start in memory although durable entries wait"),
  schema: setting("MAKEGOOD_SCHEMA", schemaName, "makegood", "the schema of its tables in PostgreSQL"),
  sink_allow: setting("MAKEGOOD_SINK_ALLOW", ranges, null, "private ranges that sinks of the API may reach"),
  tokens: setting("MAKEGOOD_TOKENS", tokens, null, "who may ask: name:secret[;expires=2027-01-31],…", SECRET),
  concurrency: setting("MAKEGOOD_CONCURRENCY", v.integer(1, 10_000), concurrency as number, "attempts at once"),
  poll_ms: setting("MAKEGOOD_POLL_MS", v.integer(10, 3_600_000), pollMs as number, "how often the store is asked without a hint"),
  drain_ms: setting("MAKEGOOD_DRAIN_MS", v.integer(0, 3_600_000), drainMs as number, "how long a stop waits for attempts"),
  kept_days: setting("MAKEGOOD_KEPT_DAYS", keptDays, deliveredKeptMs / DAY_MS, "how long delivered messages are kept"),
  audit_kept_days: setting("MAKEGOOD_AUDIT_KEPT_DAYS", forever, AUDIT_KEPT_DAYS as number, "how long audit records are kept"),
  evidence_key_file: setting("MAKEGOOD_EVIDENCE_KEY_FILE", text, null, "the key that signs evidence; made where there is none"),
  evidence_copy: setting("MAKEGOOD_EVIDENCE_COPY", text, "log", "where evidence is copied to: a file, an http(s) URL, log, none"),
  dead_letters_max: setting(
    "MAKEGOOD_DEAD_LETTERS_MAX",
    someDead,
    deadLettersMax as number,
    "more open dead letters are a reason in /health",
  ),
  dead_kept_days: setting("MAKEGOOD_DEAD_KEPT_DAYS", forever, KEPT.dead as number, "resolved and discarded dead letters"),
  occurrences_kept_days: setting("MAKEGOOD_OCCURRENCES_KEPT_DAYS", forever, KEPT.occurrences as number, "failures of groups"),
  redrive_items_kept_days: setting(
    "MAKEGOOD_REDRIVE_ITEMS_KEPT_DAYS",
    forever,
    KEPT.redrive_items as number,
    "of ended redrives",
  ),
  provenance_kept_days: setting("MAKEGOOD_PROVENANCE_KEPT_DAYS", forever, KEPT.provenance as number, "who did what, and why"),
  replays_kept_days: setting("MAKEGOOD_REPLAYS_KEPT_DAYS", forever, KEPT.replays as number, "which message was made from which"),
  usage_kept_days: setting("MAKEGOOD_USAGE_KEPT_DAYS", forever, KEPT.usage_turns as number, "turns and quotas, by period"),
  replay_window_days: setting(
    "MAKEGOOD_REPLAY_WINDOW_DAYS",
    keptDays,
    null,
    "how far back something may be sent again under its key",
  ),
  archive: setting(
    "MAKEGOOD_ARCHIVE",
    archivePlace,
    "table",
    "where records go that retention takes: table, off, file:…, https://…",
  ),
  archive_classes: setting("MAKEGOOD_ARCHIVE_CLASSES", archiveClasses, null, "which of them keep their text; all but delivered"),
  witness: setting("MAKEGOOD_WITNESS", text, null, "a file outside of the store, where conservation writes how it stands"),
  payload_bytes_max: setting("MAKEGOOD_PAYLOAD_BYTES_MAX", payloadBytes, LIMITS.payloadBytesMax as number, "a payload at most"),
  recovery: setting("MAKEGOOD_RECOVERY", v.oneOf(["on", "off"]), "on", "off: no recovery engine here, its addresses answer 501"),
  recovery_rule_debug: setting("RECOVERY_RULE_DEBUG", flag, false, "log what each rule said"),
  recovery_evaluator_enabled: setting("RECOVERY_EVALUATOR_ENABLED", flag, true, "evaluate groups"),
  recovery_auto_execute: setting("RECOVERY_AUTO_EXECUTE", flag, false, "execute safe actions without a person"),
  recovery_min_confidence: setting("RECOVERY_MIN_CONFIDENCE", v.number(0, 1), CONFIDENCE_GATES.select as number, "below it none"),
  app_version: setting("MAKEGOOD_APP_VERSION", text, null, "the version of the program whose messages die here"),
  log: setting("MAKEGOOD_LOG", v.oneOf(["json", "text"]), null, "the form of log lines; text on a terminal, else json"),
  log_level: setting("MAKEGOOD_LOG_LEVEL", v.oneOf(LOG_LEVELS), "info", "the least that is logged"),
  trace_propagate: setting(
    "MAKEGOOD_TRACE_PROPAGATE",
    flag,
    false,
    "keep the trace with messages and send it on (OpenTelemetry)",
  ),
  url: setting("MAKEGOOD_URL", serverUrl, null, "the server that commands ask", CALLER),
  token: setting("MAKEGOOD_TOKEN", text, null, "the secret that commands send", { ...SECRET, ...CALLER }),
  config: setting("MAKEGOOD_CONFIG", text, null, "the config file", CALLER),
} satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;

type ValueOf<S> = S extends { readonly schema: infer Z extends z.ZodType; readonly fallback: infer F } ? z.output<Z> | F : never;

export type Settings = { readonly [N in SettingName]: ValueOf<(typeof SETTINGS)[N]> };

/** The value that a text (or a value of the file) stands for; undefined and a fault, without its secret, when it is none. */
export function readValue<S extends z.ZodType>(schema: S, given: unknown, where: string, faults: string[], secret = false) {
  const checked = check(schema, typeof given === "string" ? textValue(given.trim(), schema) : given);
  if (checked.ok) return checked.value;
  const shown = secret ? "" : `, not ${JSON.stringify(given).slice(0, 100)}`;
  faults.push(`${where}: ${checked.faults.named[0]?.detail}${shown}`);
  return undefined;
}

// The seeds' variables of their Redis streams (AUD-31, REC-31, REC-40, CON-27), read only for those of MAKEGOOD_STREAMS.
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
