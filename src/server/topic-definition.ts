/**
 * From a topic's JSON to the kernel's definition, for the API and the config file. The schema judges its form; what follows from several
 * settings together, and what a sink of its kind may be, is asked here. Everything that is wrong is reported together.
 */
import type { z } from "zod";
import { check, type Fault, type Faults, namedOf } from "../contract/faults.ts";
import { type retry, type sink, topicDefinition } from "../contract/topics.ts";
import { DEFAULTS } from "../message/limits.ts";
import { RETRY_POLICIES, type RetryConfig, retryPolicy } from "../message/retry-policy.ts";
import { CARRIERS, type SinkConfig, type TopicDefinition } from "../message/topic.ts";
import { leaseProblem, topicProblems } from "../message/validate-topic.ts";
import type { SinkFault } from "../sink/sink-kind.ts";

/** Says everything that is wrong with a sink, at declaration; what is read here is only trusted to have its JSON types. */
export type SinkCheck = (sink: SinkConfig) => readonly SinkFault[];

export interface TopicRules {
  readonly checkSink: SinkCheck;
  /** From the config file: private addresses are allowed, because its author runs the process. */
  readonly trusted: boolean;
}

export type TopicRead =
  | { readonly ok: true; readonly definition: TopicDefinition; readonly paused: boolean | undefined }
  | { readonly ok: false; readonly faults: Faults };

type Given = z.output<typeof topicDefinition>;

/** `value`: JSON of any form, as the config file has it. */
export function readTopic(name: string, value: unknown, rules: TopicRules): TopicRead {
  const checked = check(topicDefinition, value);
  return checked.ok ? topicOf(name, checked.value, rules) : checked;
}

export function topicOf(name: string, given: Given, rules: TopicRules): TopicRead {
  const faults: Fault[] = [];
  const leaseMs = given.lease_ms ?? DEFAULTS.leaseMs;
  const sinks = (["sink", ...CARRIERS] as const).flatMap((field) => {
    const one = given[field];
    return one === undefined ? [] : [[field, sinkOf(field, one, leaseMs, rules, faults)] as const];
  });
  const definition = defined({
    name,
    retry: retryOf(given.retry, faults),
    schemaVersion: given.schema_version ?? null,
    leaseMs,
    concurrency: given.concurrency ?? null,
    tenantConcurrency: given.tenant_concurrency ?? null,
    ratePerSecond: given.rate_per_second,
    tenantRatePerSecond: given.tenant_rate_per_second,
    concurrencyTotal: given.concurrency_total,
    ordering: given.ordering ?? "key",
    ...Object.fromEntries(sinks),
  }) as TopicDefinition;
  // The kernel has the last word; what is found here has no field name of the API.
  if (faults.length === 0) for (const detail of topicProblems(definition)) faults.push({ field: ".", detail });
  return faults.length === 0 ? { ok: true, definition, paused: given.paused } : { ok: false, faults: namedOf(faults) };
}

function sinkOf(
  field: string,
  given: z.output<typeof sink>,
  leaseMs: number,
  { trusted, checkSink }: TopicRules,
  faults: Fault[],
): SinkConfig {
  const config = defined({
    kind: given.kind ?? "",
    url: given.url,
    timeoutMs: given.timeout_ms,
    headers: someOf(given.headers),
    secrets: given.secrets,
    onUnknown: given.on_unknown as SinkConfig["onUnknown"],
    statusMap: someOf(given.status_map) as SinkConfig["statusMap"],
    trusted: trusted ? true : undefined,
  });
  const tooLong = leaseProblem(config, leaseMs);
  if (tooLong !== null) faults.push({ field: `${field}.timeout_ms`, detail: tooLong });
  // What stands behind a bad field would only be reported twice.
  else
    for (const one of checkSink(config))
      faults.push({ ...one, field: one.field === null ? field : `${field}.${apiName(one.field)}` });
  return config;
}

const someOf = <T extends object>(members: T | undefined): T | undefined =>
  members === undefined || Object.keys(members).length === 0 ? undefined : members;

/** `statusMap.409` → `status_map.409`. */
function apiName(field: string): string {
  return field.replace(/^[^.]+/, (setting) => setting.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

/** Absent and undefined must not make two definitions out of one. */
function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

function retryOf(given: z.output<typeof retry> | undefined, faults: Fault[]): RetryConfig {
  if (given === undefined) return { policy: "exponential" };
  const { jitter, table_ms: tableMs } = given;
  const policy = given.policy ?? (tableMs ? "table" : "exponential");
  if (tableMs && RETRY_POLICIES.get(policy)?.tableMs === null) {
    const detail = `is for a policy with a table, and ${policy} has none: use the policy table`;
    faults.push({ field: "retry.table_ms", detail });
  }
  const config: RetryConfig = defined({
    policy,
    attemptsMax: given.attempts_max,
    baseMs: given.base_ms,
    maxMs: given.max_ms,
    jitter: typeof jitter === "boolean" ? (jitter ? "equal" : "none") : jitter,
    tableMs,
  });
  const full = retryPolicy(config);
  if (full && full.tableMs === null && full.baseMs > full.maxMs) {
    faults.push({ field: "retry.base_ms", detail: `${full.baseMs} must not be greater than max_ms (${full.maxMs})` });
  }
  return config;
}
