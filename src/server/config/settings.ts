/**
 * Every setting of the server, once: its name in the config file, its variable in the environment, what it may be and what
 * it is when nobody says. The README's table and the "did you mean" of a misspelt name read the same list.
 */
import { DEFAULTS, LIMITS } from "../../message/limits.ts";
import { LOG_LEVELS } from "../../observe/log.ts";
import { CONFIDENCE_GATES } from "../../recovery/confidence/gates.ts";
import { parseCidr } from "../../sink/address.ts";

/** A value, or what is wrong with the text. */
export type Reading<T> = { readonly value: T } | { readonly fault: string };

export interface Setting<T> {
  readonly env: string;
  /** A secret: also read from the file that `<env>_FILE` names, and never repeated in an error. */
  readonly secret: boolean;
  readonly fallback: T;
  /** Undefined: not a setting of the file, because it is about the caller's side. */
  readonly inFile: boolean;
  read(text: string): Reading<T>;
}

interface Traits {
  readonly secret?: boolean;
  readonly inFile?: boolean;
}

function setting<T>(env: string, fallback: T, read: (text: string) => Reading<T>, traits: Traits = {}): Setting<T> {
  return { env, fallback, read, secret: traits.secret ?? false, inFile: traits.inFile ?? true };
}

export const integer =
  (min: number, max: number) =>
  (text: string): Reading<number> => {
    const value = /^[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : { fault: `must be an integer from ${min} to ${max}` };
  };

const decimal =
  (above: number, max: number) =>
  (text: string): Reading<number> => {
    const value = /^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(text) ? Number(text) : Number.NaN;
    return value > above && value <= max ? { value } : { fault: `must be a number above ${above} and at most ${max}` };
  };

const oneOf =
  <T extends string>(allowed: readonly T[]) =>
  (text: string): Reading<T> => {
    const value = allowed.find((one) => one === text);
    return value === undefined ? { fault: `must be one of ${allowed.join(", ")}` } : { value };
  };

export const matching =
  (form: RegExp, what: string) =>
  (text: string): Reading<string> =>
    form.test(text) ? { value: text } : { fault: `must be ${what}` };

const list =
  (isOne: (text: string) => boolean, what: string) =>
  (text: string): Reading<readonly string[]> => {
    const entries = text.split(",").map((entry) => entry.trim());
    const given = entries.filter((entry) => entry !== "");
    const wrong = given.filter((entry) => !isOne(entry));
    return wrong.length === 0
      ? { value: given }
      : { fault: `${wrong.map((entry) => JSON.stringify(entry)).join(", ")}: ${what}` };
  };

const share = (text: string): Reading<number> => {
  const value = /^(0(\.[0-9]{1,9})?|1(\.0{1,9})?)$/.test(text) ? Number(text) : Number.NaN;
  return Number.isNaN(value) ? { fault: "must be a number from 0 to 1" } : { value };
};

/** Also as the seeds' programs spelled it: True, 1. */
const flag = (text: string): Reading<boolean> => {
  const word = text.toLowerCase();
  if (word === "true" || word === "1") return { value: true };
  return word === "false" || word === "0" ? { value: false } : { fault: "must be true or false" };
};

const HOST = /^(\[?[0-9a-fA-F:.]+\]?|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)$/;
const SCHEMA = /^(?!pg_)[a-z_][a-z0-9_]{0,50}$/;
/** What an operator may vouch for where Redis does not let us look. */
const ATTESTED = /^(appendonly=yes|appendfsync=(always|everysec)|maxmemory-policy=noeviction)$/;
export const DAY_MS = 86_400_000;

const STREAM_NAMES: readonly string[] = ["audit", "recovery"];

export type StoreName = "postgres" | "redis" | "memory";

/** Seven years. */
export const AUDIT_KEPT_DAYS = 2_557;

const daysOrForever = (text: string): Reading<number | "forever"> => {
  const reading = text === "forever" ? ({ value: "forever" } as const) : integer(1, 36_500)(text);
  return "value" in reading ? reading : { fault: "must be forever, or a whole number of days from 1 to 36500" };
};

const asIs = (text: string): Reading<string> => ({ value: text });

export const SETTINGS = {
  port: setting("MAKEGOOD_PORT", 4_600, integer(0, 65_535)),
  host: setting<string>("MAKEGOOD_HOST", "127.0.0.1", matching(HOST, "an address or a host name")),
  hosts: setting<readonly string[]>(
    "MAKEGOOD_HOSTS",
    [],
    list((one) => HOST.test(one), "not a host name"),
  ),
  data_dir: setting("MAKEGOOD_DATA_DIR", "./.makegood", asIs),
  database_url: setting<string | null>(
    "DATABASE_URL",
    null,
    matching(/^postgres(ql)?:\/\/\S+$/, "a URL that begins with postgres:// or postgresql://"),
    { secret: true },
  ),
  /** Where messages are kept. With `postgres` a REDIS_URL is the second rung of deliver(). */
  store: setting<StoreName>("MAKEGOOD_STORE", "postgres", oneOf<StoreName>(["postgres", "redis", "memory"])),
  redis_url: setting<string | null>(
    "REDIS_URL",
    null,
    matching(/^rediss?:\/\/\S+$/, "a URL that begins with redis:// or rediss://"),
    {
      secret: true,
    },
  ),
  redis_prefix: setting(
    "MAKEGOOD_REDIS_PREFIX",
    "makegood",
    matching(/^[A-Za-z0-9_.:-]{1,100}$/, "letters, digits and . _ : -, at most 100"),
  ),
  redis_attest: setting<readonly string[]>(
    "MAKEGOOD_REDIS_ATTEST",
    [],
    list((one) => ATTESTED.test(one), "not appendonly=yes, appendfsync=always|everysec or maxmemory-policy=noeviction"),
  ),
  allow_eviction: setting<string | null>(
    "MAKEGOOD_ALLOW_EVICTION",
    null,
    matching(/^(allkeys|volatile)-[a-z]+$/, "the eviction policy that is allowed, such as allkeys-lru"),
  ),
  /** Redis streams that this process empties, and whose dead letters it publishes; their own variables: stream-config.ts. */
  streams: setting<readonly string[]>(
    "MAKEGOOD_STREAMS",
    [],
    list((one) => STREAM_NAMES.includes(one), `not one of ${STREAM_NAMES.join(", ")}`),
  ),
  /** The third rung of deliver(): a directory on a local disk. Absent: there is none. */
  journal_dir: setting<string | null>("MAKEGOOD_JOURNAL_DIR", null, asIs),
  journal_bytes_max: setting<number>("MAKEGOOD_JOURNAL_BYTES_MAX", 268_435_456, integer(4_096, 1_099_511_627_776)),
  seal_key: setting<string | null>("MAKEGOOD_SEAL_KEY", null, matching(/^.{16,}$/s, "at least 16 characters"), { secret: true }),
  mask_fields: setting<readonly string[]>(
    "MAKEGOOD_MASK_FIELDS",
    [],
    list(() => true, "not a name"),
  ),
  allow_memory: setting<"despite-durable-entries" | null>(
    "MAKEGOOD_ALLOW_MEMORY",
    null,
    oneOf<"despite-durable-entries">(["despite-durable-entries"]),
  ),
  schema: setting(
    "MAKEGOOD_SCHEMA",
    "makegood",
    matching(SCHEMA, "lower-case letters, digits and _, at most 51, not beginning with pg_"),
  ),
  sink_allow: setting<readonly string[] | null>(
    "MAKEGOOD_SINK_ALLOW",
    null,
    list((one) => parseCidr(one) !== null, "not a CIDR range such as 10.0.0.0/8"),
  ),
  tokens: setting<string | null>("MAKEGOOD_TOKENS", null, asIs, { secret: true }),
  concurrency: setting<number>("MAKEGOOD_CONCURRENCY", DEFAULTS.concurrency, integer(1, 10_000)),
  poll_ms: setting<number>("MAKEGOOD_POLL_MS", DEFAULTS.pollMs, integer(10, 3_600_000)),
  drain_ms: setting<number>("MAKEGOOD_DRAIN_MS", DEFAULTS.drainMs, integer(0, 3_600_000)),
  kept_days: setting<number>("MAKEGOOD_KEPT_DAYS", DEFAULTS.deliveredKeptMs / DAY_MS, decimal(0, 36_500)),
  audit_kept_days: setting<number | "forever">("MAKEGOOD_AUDIT_KEPT_DAYS", AUDIT_KEPT_DAYS, daysOrForever),
  payload_bytes_max: setting<number>("MAKEGOOD_PAYLOAD_BYTES_MAX", LIMITS.payloadBytesMax, integer(1, LIMITS.payloadBytesMax)),
  /** `off`: no recovery engine in this process; its endpoints answer 501. */
  recovery: setting<"on" | "off">("MAKEGOOD_RECOVERY", "on", oneOf<"on" | "off">(["on", "off"])),
  recovery_rule_debug: setting<boolean>("RECOVERY_RULE_DEBUG", false, flag),
  recovery_evaluator_enabled: setting<boolean>("RECOVERY_EVALUATOR_ENABLED", true, flag),
  recovery_auto_execute: setting<boolean>("RECOVERY_AUTO_EXECUTE", false, flag),
  recovery_min_confidence: setting<number>("RECOVERY_MIN_CONFIDENCE", CONFIDENCE_GATES.select, share),
  log: setting<"json" | "text" | null>("MAKEGOOD_LOG", null, oneOf<"json" | "text">(["json", "text"])),
  log_level: setting<(typeof LOG_LEVELS)[number]>("MAKEGOOD_LOG_LEVEL", "info", oneOf(LOG_LEVELS)),
  url: setting<string | null>("MAKEGOOD_URL", null, matching(/^https?:\/\/[^\s/?#@]+\/?$/, "http://host:port, without a path"), {
    inFile: false,
  }),
  token: setting<string | null>("MAKEGOOD_TOKEN", null, asIs, { secret: true, inFile: false }),
  config: setting<string | null>("MAKEGOOD_CONFIG", null, asIs, { inFile: false }),
} as const;

export type SettingName = keyof typeof SETTINGS;

type ValueOf<S> = S extends Setting<infer T> ? T : never;

/** All settings with their values, as read. */
export type Settings = { readonly [N in SettingName]: ValueOf<(typeof SETTINGS)[N]> };
