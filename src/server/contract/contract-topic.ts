/**
 * A topic between its JSON and the kernel's definition. Everything that is wrong with it is reported together; unknown
 * fields are refused; secrets go in and never come out.
 */
import { DEFAULTS, LIMITS } from "../../message/limits.ts";
import type { Ordering } from "../../message/message.ts";
import { RATE_MAX, RATE_MIN } from "../../message/rate.ts";
import { RETRY_POLICIES, type RetryConfig, retryPolicy } from "../../message/retry-policy.ts";
import { type BreakerState, CARRIERS, type SinkConfig, type TopicDefinition, type TopicRecord } from "../../message/topic.ts";
import { attemptTimeoutMs, leaseProblem, topicProblems } from "../../message/validate-topic.ts";
import { type Hold, holdOf, type Served } from "../../message/worker-note.ts";
import type { SinkFault } from "../../sink/sink-kind.ts";
import { type FieldFault, type Fields, readFields } from "./fields.ts";

export interface SinkJson {
  readonly kind: SinkConfig["kind"];
  readonly url: string | null;
  readonly timeout_ms: number;
  readonly headers: Readonly<Record<string, string>>;
  /** How many secrets are set; they themselves are write-only. */
  readonly secrets_set: number;
  readonly on_unknown: "retry" | "hold";
  readonly status_map: Readonly<Record<string, string>> | null;
}

export interface TopicJson {
  readonly name: string;
  readonly sink: SinkJson;
  /** Where recovery may bring its dead letters instead, and what undoes their effect. */
  readonly fallback: SinkJson | null;
  readonly compensation: SinkJson | null;
  readonly retry: {
    readonly policy: string;
    readonly attempts_max: number;
    readonly base_ms: number;
    readonly max_ms: number;
    readonly jitter: "equal" | "none";
    readonly table_ms: readonly number[] | null;
  };
  readonly schema_version: number | null;
  readonly lease_ms: number;
  readonly concurrency: number | null;
  readonly tenant_concurrency: number | null;
  /** Over all workers. */
  readonly rate_per_second: number | null;
  readonly tenant_rate_per_second: number | null;
  readonly concurrency_total: number | null;
  readonly ordering: Ordering;
  readonly paused: boolean;
  readonly source: TopicRecord["source"];
  readonly revision: number;
  readonly disabled_reason: string | null;
  readonly breaker: {
    readonly state: BreakerState["state"];
    readonly probe_in_ms: number;
    readonly trips: number;
    readonly reason: string | null;
    /** Tenants that are held alone. */
    readonly tenants: readonly { readonly tenant_id: string; readonly reason: string }[];
  };
  /** Why nothing of it is attempted now; null: it is being delivered. */
  readonly held: Hold | null;
  /** Workers that would serve it and cannot, while others may: the first few. */
  readonly not_served_by: readonly (Hold & { readonly owner: string })[];
}

/** Says everything that is wrong with a sink, at declaration; what is read here is only trusted to have its JSON types. */
export type SinkCheck = (sink: SinkConfig) => readonly SinkFault[];

export interface TopicRules {
  readonly checkSink: SinkCheck;
  /** From the config file: private addresses are allowed, because its author runs the process. */
  readonly trusted: boolean;
}

export type TopicRead =
  | { readonly ok: true; readonly definition: TopicDefinition; readonly paused: boolean | undefined }
  | { readonly ok: false; readonly faults: readonly FieldFault[] };

const CONCURRENCY_MAX = 100_000;
const UNABLE_SHOWN = 10;
const INT32_MAX = 2_147_483_647;
/** What a GET adds; allowed in a PUT and ignored, so that what was read can be sent back. */
const SHOWN_ONLY = ["name", "source", "revision", "disabled_reason", "breaker", "held", "not_served_by"];
/** Shown instead of a header's value that looks like a credential, and refused where a value is meant. */
export const REDACTED = "[redacted]";
const CREDENTIAL = /auth|cookie|token|secret|passw|api-?key|signature|credential/i;

export function readTopic(name: string, value: unknown, rules: TopicRules): TopicRead {
  const faults: FieldFault[] = [];
  const fields = readFields(value, "", faults);
  if (!fields) return { ok: false, faults };
  const leaseMs = fields.integer("lease_ms", LIMITS.leaseMsMin, LIMITS.leaseMsMax) ?? DEFAULTS.leaseMs;
  const sink = readSink(fields, "sink", leaseMs, rules);
  const carriers = CARRIERS.map((name) => [name, readSink(fields, name, leaseMs, rules)]);
  const settings = {
    name,
    retry: readRetry(fields),
    schemaVersion: fields.integer("schema_version", 0, INT32_MAX) ?? null,
    leaseMs,
    concurrency: fields.integer("concurrency", 1, CONCURRENCY_MAX) ?? null,
    tenantConcurrency: fields.integer("tenant_concurrency", 1, CONCURRENCY_MAX) ?? null,
    ratePerSecond: fields.number("rate_per_second", RATE_MIN, RATE_MAX),
    tenantRatePerSecond: fields.number("tenant_rate_per_second", RATE_MIN, RATE_MAX),
    concurrencyTotal: fields.integer("concurrency_total", 1, CONCURRENCY_MAX),
    ordering: fields.oneOf("ordering", ["none", "key", "strict"]) ?? "key",
  };
  const paused = fields.boolean("paused");
  fields.refuseUnknown(SHOWN_ONLY);
  if (faults.length > 0 || !sink) return { ok: false, faults };
  const definition: TopicDefinition = defined({ ...settings, sink, ...Object.fromEntries(carriers) });
  // The kernel has the last word; what is found here has no field name of the API.
  for (const detail of topicProblems(definition)) faults.push({ field: ".", detail });
  return faults.length === 0 ? { ok: true, definition, paused } : { ok: false, faults };
}

function readSink(topic: Fields, name: string, leaseMs: number, rules: TopicRules): SinkConfig | undefined {
  if (name === "sink" && !topic.has(name)) topic.fault(name, "is missing: an object with at least a kind");
  const fields = topic.object(name);
  if (!fields) return undefined;
  const before = fields.faults.length;
  const sink: SinkConfig = defined({
    kind: fields.text("kind") ?? "",
    url: fields.text("url"),
    timeoutMs: fields.number("timeout_ms"),
    headers: readHeaders(fields),
    secrets: fields.list("secrets", null, isText, "strings"),
    onUnknown: fields.text("on_unknown") as SinkConfig["onUnknown"],
    statusMap: readStatusMap(fields),
    trusted: rules.trusted ? true : undefined,
  });
  fields.refuseUnknown(["secrets_set"]);
  const tooLong = leaseProblem(sink, leaseMs);
  if (tooLong !== null) fields.fault("timeout_ms", tooLong);
  // What stands behind a bad field would only be reported twice.
  if (fields.faults.length > before) return sink;
  for (const { field, detail } of rules.checkSink(sink)) {
    if (field === null) topic.fault(name, detail);
    else fields.fault(apiName(field), detail);
  }
  return sink;
}

/** `statusMap.409` → `status_map.409`. */
function apiName(field: string): string {
  return field.replace(/^[^.]+/, (setting) => setting.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

/** Absent and undefined must not make two definitions out of one. */
function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

const isText = (one: unknown): one is string => typeof one === "string" && one !== "";

const isDelay = (one: unknown): one is number =>
  typeof one === "number" && Number.isInteger(one) && one >= 0 && one <= LIMITS.delayMsMax;

function readHeaders(sink: Fields): Record<string, string> | undefined {
  const headers = sink.object("headers");
  if (!headers) return undefined;
  const entries = headers.entries().flatMap(([name, value]): [string, string][] => {
    if (typeof value !== "string") headers.fault(name.slice(0, 100), "must be a string");
    else if (value === REDACTED) headers.fault(name, "is the mark for a value that is not shown: send the value itself");
    else return [[name, value]];
    return [];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function readStatusMap(sink: Fields): SinkConfig["statusMap"] {
  const map = sink.object("status_map");
  if (!map) return undefined;
  const entries = map.entries();
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as SinkConfig["statusMap"]);
}

function readRetry(topic: Fields): RetryConfig {
  const fields = topic.object("retry");
  if (!fields) return { policy: "exponential" };
  const tableMs = fields.list("table_ms", 100, isDelay, `integers from 0 to ${LIMITS.delayMsMax}`);
  const policy = fields.oneOf("policy", [...RETRY_POLICIES.keys()]) ?? (tableMs ? "table" : "exponential");
  if (tableMs && RETRY_POLICIES.get(policy)?.tableMs === null) {
    fields.fault("table_ms", `is for a policy with a table, and ${policy} has none: use the policy table`);
  }
  const baseMs = fields.integer("base_ms", 1, LIMITS.delayMsMax);
  const maxMs = fields.integer("max_ms", 1, LIMITS.delayMsMax);
  const retry: RetryConfig = defined({
    policy,
    attemptsMax: fields.integer("attempts_max", 1, LIMITS.attemptsMax),
    baseMs,
    maxMs,
    jitter: readJitter(fields),
    tableMs,
  });
  const full = retryPolicy(retry);
  if (full && full.tableMs === null && full.baseMs > full.maxMs) {
    fields.fault("base_ms", `${full.baseMs} must not be greater than max_ms (${full.maxMs})`);
  }
  fields.refuseUnknown();
  return retry;
}

/** Also true and false, as other systems spell it. */
function readJitter(retry: Fields): "equal" | "none" | undefined {
  const found = retry.raw("jitter");
  if (typeof found === "boolean") return found ? "equal" : "none";
  return retry.oneOf("jitter", ["equal", "none"]);
}

export function topicJson(topic: TopicRecord, served: Served): TopicJson {
  const retry = retryPolicy(topic.retry);
  return {
    name: topic.name,
    sink: sinkJson(topic.sink, topic.leaseMs),
    fallback: topic.fallback ? sinkJson(topic.fallback, topic.leaseMs) : null,
    compensation: topic.compensation ? sinkJson(topic.compensation, topic.leaseMs) : null,
    retry: {
      policy: topic.retry.policy,
      attempts_max: retry?.attemptsMax ?? DEFAULTS.attemptsMax,
      base_ms: retry?.baseMs ?? DEFAULTS.retryBaseMs,
      max_ms: retry?.maxMs ?? DEFAULTS.retryMaxMs,
      jitter: retry?.jitter ?? "equal",
      table_ms: retry?.tableMs ?? null,
    },
    schema_version: topic.schemaVersion,
    lease_ms: topic.leaseMs,
    concurrency: topic.concurrency,
    tenant_concurrency: topic.tenantConcurrency,
    rate_per_second: topic.ratePerSecond ?? null,
    tenant_rate_per_second: topic.tenantRatePerSecond ?? null,
    concurrency_total: topic.concurrencyTotal ?? null,
    ordering: topic.ordering,
    paused: topic.paused,
    source: topic.source,
    revision: topic.revision,
    disabled_reason: topic.disabledReason,
    breaker: {
      state: topic.breaker.state,
      probe_in_ms: topic.breaker.probeInMs,
      trips: topic.breaker.trips,
      reason: topic.breaker.reason,
      tenants: topic.breaker.tenants.map(({ tenantId, reason }) => ({ tenant_id: tenantId, reason })),
    },
    held: holdOf(topic, served),
    not_served_by: served.unable(topic.name).slice(0, UNABLE_SHOWN),
  };
}

function sinkJson(sink: SinkConfig, leaseMs: number): SinkJson {
  return {
    kind: sink.kind,
    url: sink.url ?? null,
    timeout_ms: attemptTimeoutMs(sink, leaseMs),
    headers: shownHeaders(sink.headers ?? {}),
    secrets_set: sink.secrets?.length ?? 0,
    on_unknown: sink.onUnknown ?? "retry",
    status_map: sink.statusMap ?? null,
  };
}

function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, CREDENTIAL.test(name) ? REDACTED : value]));
}
