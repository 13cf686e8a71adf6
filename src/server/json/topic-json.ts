/** Topics between their JSON and the kernel's words, for the API and the config file; secrets never come out. */
import type { z } from "zod";
import { type Checked, check, type Fault, namedOf } from "../../contract/faults.ts";
import { REDACTED, topic, topicDefinition } from "../../contract/topics.ts";
import { isObject } from "../../message/json.ts";
import { DEFAULTS } from "../../message/limits.ts";
import { RETRY_POLICIES, type RetryConfig, type RetryPolicy, retryPolicy } from "../../message/retry-policy.ts";
import { CARRIERS, holdsCredential, type SinkConfig, type TopicDefinition, type TopicRecord } from "../../message/topic.ts";
import { attemptTimeoutMs, leaseProblem, topicProblems } from "../../message/validate-topic.ts";
import { holdOf, type Served } from "../../message/worker-note.ts";
import type { SinkFault } from "../../sink/sink-kind.ts";
import { type Own, ownOf, wireName, wireOf } from "./wire.ts";

const UNABLE_SHOWN = 10;
const UNKNOWN = retryPolicy({ policy: "exponential" }) as RetryPolicy;

export function topicJson(found: TopicRecord, served: Served) {
  const shown = ({ headers = {}, secrets = [], ...sink }: SinkConfig) => ({
    kind: sink.kind,
    url: sink.url ?? null,
    timeoutMs: attemptTimeoutMs(sink, found.leaseMs),
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, holdsCredential(name) ? REDACTED : text])),
    secretsSet: secrets.length,
    onUnknown: sink.onUnknown ?? "retry",
    statusMap: sink.statusMap ?? null,
  });
  const { ratePerSecond = null, tenantRatePerSecond = null, concurrencyTotal = null, fallback, compensation } = found;
  const { moneyField = null } = found;
  return wireOf(topic, {
    ...{ ...found, ratePerSecond, tenantRatePerSecond, concurrencyTotal, moneyField },
    sink: shown(found.sink),
    fallback: fallback ? shown(fallback) : null,
    compensation: compensation ? shown(compensation) : null,
    retry: { ...(retryPolicy(found.retry) ?? UNKNOWN), policy: found.retry.policy },
    held: holdOf(found, served),
    notServedBy: served.unable(found.name).slice(0, UNABLE_SHOWN),
  });
}

/** Says everything that is wrong with a sink, at declaration; what is read here is only trusted to have its JSON types. */
export type SinkCheck = (sink: SinkConfig) => readonly SinkFault[];
export type ReadTopic = { readonly definition: TopicDefinition; readonly paused: boolean | undefined };
type Given = Own<z.output<typeof topicDefinition>>;

/** Of the config file, whose author runs the process: private addresses are allowed. */
export function readTopic(name: string, value: unknown, checkSink: SinkCheck): Checked<ReadTopic> {
  const checked = check(topicDefinition, value);
  return checked.ok ? topicOf(name, ownOf(topicDefinition, checked.value), checkSink, true) : checked;
}

export function topicOf(name: string, given: Given, checkSink: SinkCheck, trusted = false): Checked<ReadTopic> {
  const faults: Fault[] = [];
  const { leaseMs = DEFAULTS.leaseMs, schemaVersion = null, concurrency = null, tenantConcurrency = null } = given;
  const { ratePerSecond, tenantRatePerSecond, concurrencyTotal, moneyField, ordering = "key", paused } = given;
  const sinks = (["sink", ...CARRIERS] as const).flatMap((field) => {
    if (given[field] === undefined) return [];
    const { secretsSet: _, kind = "", ...rest } = given[field];
    const config = said({ kind, ...rest, trusted: trusted || undefined }) as SinkConfig;
    faults.push(...sinkFaults(field, config, leaseMs, checkSink));
    return [[field, config] as const];
  });
  const retry = retryOf(given.retry, faults);
  const settings = { schemaVersion, leaseMs, concurrency, tenantConcurrency, ratePerSecond, tenantRatePerSecond };
  const all = { name, retry, ...settings, concurrencyTotal, moneyField, ordering, ...Object.fromEntries(sinks) };
  const definition = said(all) as unknown as TopicDefinition;
  // The kernel has the last word; what is found here has no field name of the API.
  if (faults.length === 0) faults.push(...topicProblems(definition).map((detail) => ({ field: ".", detail })));
  return faults.length > 0 ? { ok: false, faults: namedOf(faults) } : { ok: true, value: { definition, paused } };
}

/** Absent, undefined and empty must not make several definitions out of one. */
function said<T extends object>(object: T): T {
  const isSaid = (value: unknown) => value !== undefined && !(isObject(value) && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(object).filter(([, value]) => isSaid(value))) as T;
}

function sinkFaults(field: string, config: SinkConfig, leaseMs: number, checkSink: SinkCheck): Fault[] {
  const tooLong = leaseProblem(config, leaseMs);
  // What stands behind a bad field would only be reported twice.
  if (tooLong !== null) return [{ field: `${field}.timeout_ms`, detail: tooLong }];
  // `statusMap.409` → `status_map.409`.
  const outside = (own: string | null) => (own === null ? field : `${field}.${own.replace(/^[^.]+/, wireName)}`);
  return checkSink(config).map(({ field: own, detail }) => ({ field: outside(own), detail }));
}

function retryOf(given: Partial<NonNullable<Given["retry"]>> = {}, faults: Fault[]): RetryConfig {
  const { tableMs, policy = tableMs ? "table" : "exponential" } = given;
  const noTable = `is for a policy with a table, and ${policy} has none: use the policy table`;
  if (tableMs && RETRY_POLICIES.get(policy)?.tableMs === null) faults.push({ field: "retry.table_ms", detail: noTable });
  const config: RetryConfig = { ...given, policy };
  const full = retryPolicy(config);
  if (full && full.tableMs === null && full.baseMs > full.maxMs)
    faults.push({ field: "retry.base_ms", detail: `${full.baseMs} must not be greater than max_ms (${full.maxMs})` });
  return config;
}
