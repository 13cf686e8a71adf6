/**
 * The seeds' variables of their Redis streams (AUD-31, REC-31, REC-40), read only for the streams that MAKEGOOD_STREAMS names: on
 * a machine that opens none of them they may belong to another program. Every mistake is reported with the others of the configuration,
 * pairs that cannot work together included (CON-27).
 */
import { LIMITS } from "../../message/limits.ts";
import type { RecoveryStreamSettings } from "../../presets/recovery/stream.ts";
import { RECOVERY_STREAM } from "../../store/redis/streams/seed-names.ts";
import { TOPIC_VARIABLES } from "./recovery-config.ts";
import { integer, matching, type Reading, type Settings } from "./settings.ts";

export interface StreamsConfig {
  /** Where the streams are. */
  readonly redis: string;
  readonly audit: AuditStreamConfig | null;
  readonly recovery: RecoveryStreamSettings | null;
  readonly consumerName: string | undefined;
}

export interface AuditStreamConfig {
  readonly group: string | undefined;
  /** The audit service that gets the records over HTTP; null: this process writes them to its own store. */
  readonly serviceUrl: string | null;
}

type Env = Readonly<Record<string, string | undefined>>;
type Read = <T>(variable: string, read: (text: string) => Reading<T>) => T | undefined;

const keyName = matching(/^[\x21-\x7e]{1,200}$/, "a name of 1 to 200 characters without spaces");
const serviceUrl = matching(/^https?:\/\/[^\s?#@]+$/, "a URL that begins with http:// or https://, without credentials");
const DAYS_30_MS = 30 * 86_400_000;
/** `host:port`, as the seed has it, or a URL; several of a cluster with commas between them. */
const ADDRESS = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$/;

function redisAddress(text: string): Reading<string> {
  const urls = text.split(",").map((one) => (ADDRESS.test(one.trim()) ? `redis://${one.trim()}` : one.trim()));
  const fits = urls.every((url) => /^rediss?:\/\/\S+$/.test(url) && URL.canParse(url));
  return fits ? { value: urls.join(",") } : { fault: "must be host:port, or a URL that begins with redis:// or rediss://" };
}

/** Null: no stream is opened here. */
export function readStreams(settings: Settings, env: Env, faults: string[]): StreamsConfig | null {
  const { streams } = settings;
  if (streams.length === 0) return null;
  const read: Read = (variable, parse) => {
    const text = env[variable]?.trim();
    if (text === undefined || text === "") return undefined;
    const reading = parse(text);
    if ("value" in reading) return reading.value;
    // An address may carry a password.
    faults.push(`${variable}: ${reading.fault}${variable === "REDIS_ADDR" ? "" : `, not ${JSON.stringify(text.slice(0, 100))}`}`);
    return undefined;
  };
  const redis = read("REDIS_ADDR", redisAddress) ?? settings.redis_url;
  if (redis === null && !faults.some((fault) => fault.startsWith("REDIS_ADDR")))
    faults.push("MAKEGOOD_STREAMS opens streams: REDIS_ADDR or REDIS_URL must say in which Redis");
  const audit = streams.includes("audit") ? readAudit(settings, read, faults) : null;
  const recovery = streams.includes("recovery") ? readRecovery(read, faults) : null;
  return { redis: redis ?? "", audit, recovery, consumerName: read("CONSUMER_NAME", keyName) };
}

const M10 = ["STREAM_KEY", "CONSUMER_GROUP", "DEAD_LETTER_STREAM", "STREAM_MAX_LEN", "CLAIM_IDLE_MS", "MAX_RECLAIM_ATTEMPTS"];
const M10_BACKOFF = ["RECLAIM_BASE_BACKOFF_MS", "RECLAIM_MAX_BACKOFF_MS"];

/** Variables of the seeds' streams that are set and change nothing here; to be said at start. */
export function unusedVariables({ streams, recovery: engine }: Settings, env: Env): string[] {
  // Takeovers are counted by Redis itself (DR-42): there is no key to name.
  const all = streams.includes("recovery") ? [] : [...M10, ...M10_BACKOFF].map((name) => `M10_${name}`);
  const recovery = engine === "on" ? all.filter((name) => !TOPIC_VARIABLES.includes(name)) : all;
  const any = streams.length > 0 ? [] : ["REDIS_ADDR"];
  return [...any, ...recovery, "M10_RECLAIM_ATTEMPTS_KEY", "RECOVERY_QUEUE_KEY"].filter((name) => (env[name] ?? "") !== "");
}

function readAudit({ store }: Settings, read: Read, faults: string[]): AuditStreamConfig {
  const group = read("CONSUMER_GROUP", keyName);
  const url = read("DATA_STORAGE_URL", serviceUrl) ?? null;
  if (store !== "postgres" && url === null && !faults.some((fault) => fault.startsWith("DATA_STORAGE_URL"))) {
    const remedy = "use the store postgres, or let DATA_STORAGE_URL name the audit service that gets the records";
    faults.push(`MAKEGOOD_STREAMS opens the audit stream, and MAKEGOOD_STORE ${store} keeps no audit records: ${remedy}`);
  }
  return { group, serviceUrl: url };
}

function readRecovery(read: Read, faults: string[]): RecoveryStreamSettings {
  const { stream, group, deadStream, reclaimIdleMs, reclaimsMax, reclaimBaseMs, reclaimIdleMsMax } = RECOVERY_STREAM;
  const settings = {
    stream: read("M10_STREAM_KEY", keyName) ?? stream,
    group: read("M10_CONSUMER_GROUP", keyName) ?? group,
    // The default is left to the stream's doors: on a cluster it has another name.
    deadStream: read("M10_DEAD_LETTER_STREAM", keyName),
    lengthMax: read("M10_STREAM_MAX_LEN", integer(1, 1_000_000_000)),
    reclaimIdleMs: read("M10_CLAIM_IDLE_MS", integer(100, DAYS_30_MS)) ?? reclaimIdleMs,
    reclaimsMax: read("M10_MAX_RECLAIM_ATTEMPTS", integer(0, LIMITS.attemptsMax)) ?? reclaimsMax,
    reclaimBaseMs: read("M10_RECLAIM_BASE_BACKOFF_MS", integer(1, DAYS_30_MS)) ?? reclaimBaseMs,
    reclaimIdleMsMax: read("M10_RECLAIM_MAX_BACKOFF_MS", integer(1, DAYS_30_MS)) ?? reclaimIdleMsMax,
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
