/**
 * From a topic's JSON to the kernel's definition, for the API and the config file. The schema judges its form; what follows from several
 * settings together, and what a sink of its kind may be, is asked here. Everything that is wrong is reported together.
 */
import type { z } from "zod";
import { type Checked, check, type Fault, namedOf } from "../contract/faults.ts";
import { topicDefinition } from "../contract/topics.ts";
import { DEFAULTS } from "../message/limits.ts";
import { RETRY_POLICIES, type RetryConfig, retryPolicy } from "../message/retry-policy.ts";
import { CARRIERS, type SinkConfig, type TopicDefinition } from "../message/topic.ts";
import { leaseProblem, topicProblems } from "../message/validate-topic.ts";
import type { SinkFault } from "../sink/sink-kind.ts";
import { type Own, ownOf, wireName } from "./json/wire.ts";

/** Says everything that is wrong with a sink, at declaration; what is read here is only trusted to have its JSON types. */
export type SinkCheck = (sink: SinkConfig) => readonly SinkFault[];

export interface TopicRules {
  readonly checkSink: SinkCheck;
  /** From the config file: private addresses are allowed, because its author runs the process. */
  readonly trusted: boolean;
}

export interface ReadTopic {
  readonly definition: TopicDefinition;
  readonly paused: boolean | undefined;
}

type Given = Own<z.output<typeof topicDefinition>>;

/** `value`: JSON of any form, as the config file has it. */
export function readTopic(name: string, value: unknown, rules: TopicRules): Checked<ReadTopic> {
  const checked = check(topicDefinition, value);
  return checked.ok ? topicOf(name, ownOf(topicDefinition, checked.value), rules) : checked;
}

export function topicOf(name: string, given: Given, { checkSink, trusted }: TopicRules): Checked<ReadTopic> {
  const faults: Fault[] = [];
  const { leaseMs = DEFAULTS.leaseMs, schemaVersion = null, concurrency = null, tenantConcurrency = null } = given;
  const { ratePerSecond, tenantRatePerSecond, concurrencyTotal, ordering = "key", paused } = given;
  const sinks = (["sink", ...CARRIERS] as const).flatMap((field) => {
    const one = given[field];
    if (one === undefined) return [];
    const { secretsSet: _, headers, statusMap, kind = "", ...rest } = one;
    const own = { kind, ...rest, headers: someOf(headers), statusMap: someOf(statusMap), trusted: trusted || undefined };
    const config = defined(own) as SinkConfig;
    faults.push(...sinkFaults(field, config, leaseMs, checkSink));
    return [[field, config] as const];
  });
  const retry = retryOf(given.retry, faults);
  const settings = { schemaVersion, leaseMs, concurrency, tenantConcurrency, ratePerSecond, tenantRatePerSecond };
  const definition = defined({ name, retry, ...settings, concurrencyTotal, ordering, ...Object.fromEntries(sinks) });
  // The kernel has the last word; what is found here has no field name of the API.
  if (faults.length === 0) for (const detail of topicProblems(definition as TopicDefinition)) faults.push({ field: ".", detail });
  return faults.length > 0
    ? { ok: false, faults: namedOf(faults) }
    : { ok: true, value: { definition: definition as TopicDefinition, paused } };
}

function sinkFaults(field: string, config: SinkConfig, leaseMs: number, checkSink: SinkCheck): Fault[] {
  const tooLong = leaseProblem(config, leaseMs);
  // What stands behind a bad field would only be reported twice.
  if (tooLong !== null) return [{ field: `${field}.timeout_ms`, detail: tooLong }];
  return checkSink(config).map(({ field: own, detail }) => {
    // `statusMap.409` → `status_map.409`.
    return { field: own === null ? field : `${field}.${own.replace(/^[^.]+/, wireName)}`, detail };
  });
}

const someOf = <T extends object>(members: T | undefined): T | undefined =>
  members === undefined || Object.keys(members).length === 0 ? undefined : members;

/** Absent and undefined must not make two definitions out of one. */
function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

function retryOf(given: Given["retry"], faults: Fault[]): RetryConfig {
  if (given === undefined) return { policy: "exponential" };
  const { tableMs, policy = tableMs ? "table" : "exponential" } = given;
  if (tableMs && RETRY_POLICIES.get(policy)?.tableMs === null) {
    const detail = `is for a policy with a table, and ${policy} has none: use the policy table`;
    faults.push({ field: "retry.table_ms", detail });
  }
  const config: RetryConfig = { ...given, policy };
  const full = retryPolicy(config);
  if (full && full.tableMs === null && full.baseMs > full.maxMs)
    faults.push({ field: "retry.base_ms", detail: `${full.baseMs} must not be greater than max_ms (${full.maxMs})` });
  return config;
}
