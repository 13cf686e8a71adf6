/**
 * What may become a topic: every setting in its range, and together possible (an attempt's deadline ends before its lease).
 * All problems are found at once, so that a configuration is corrected in one go. What is wrong with a sink by itself is decided
 * in `src/sink/check-sink.ts`.
 */
import { MakegoodError } from "./errors.ts";
import { DEFAULTS, LIMITS } from "./limits.ts";
import { RATE_MAX, RATE_MIN } from "./rate.ts";
import { RETRY_POLICIES, type RetryConfig, retryPolicy } from "./retry-policy.ts";
import { CARRIERS, type SinkConfig, type TopicDefinition } from "./topic.ts";
import { isTopicName } from "./validate.ts";

export const TOPIC_LIMITS = { concurrencyMax: 100_000, schemaVersionMax: 2_147_483_647, tableMax: 100 } as const;

/** Between the end of an attempt and the end of its lease: the time to settle. */
export function leaseHeadroomMs(leaseMs: number): number {
  return Math.min(1_000, leaseMs / 10);
}

/** The one total deadline of an attempt. A function may run longer than the lease, which is extended under it. */
export function attemptTimeoutMs(sink: SinkConfig, leaseMs: number): number {
  const asked = sink.timeoutMs ?? DEFAULTS.attemptTimeoutMs;
  return sink.kind === "function" ? asked : Math.min(asked, leaseMs - leaseHeadroomMs(leaseMs));
}

/** Members by name, from the outside in; a list has its places as numbers. */
const MONEY_FIELD = /^(?=.{1,200}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

/** Everything that is wrong with a definition, as sentences; none: it may be stored. */
export function topicProblems(topic: TopicDefinition): string[] {
  const problems: string[] = [];
  const range = (field: string, value: number | null | undefined, min: number, max: number): void => {
    if (value === null || value === undefined) return;
    if (!Number.isInteger(value) || value < min || value > max) {
      problems.push(`${field} must be a whole number from ${min} to ${max}`);
    }
  };
  if (!isTopicName(topic.name)) {
    problems.push("the name must be namespace/name, each part lower-case letters, digits and . _ -, at most 100 bytes");
  }
  range("leaseMs", topic.leaseMs, LIMITS.leaseMsMin, LIMITS.leaseMsMax);
  range("concurrency", topic.concurrency, 1, TOPIC_LIMITS.concurrencyMax);
  range("tenantConcurrency", topic.tenantConcurrency, 1, TOPIC_LIMITS.concurrencyMax);
  range("concurrencyTotal", topic.concurrencyTotal, 1, TOPIC_LIMITS.concurrencyMax);
  for (const field of ["ratePerSecond", "tenantRatePerSecond"] as const) {
    const rate = topic[field];
    if (rate !== undefined && !(Number.isFinite(rate) && rate >= RATE_MIN && rate <= RATE_MAX)) {
      problems.push(`${field} must be a number from ${RATE_MIN} to ${RATE_MAX}`);
    }
  }
  range("schemaVersion", topic.schemaVersion, 0, TOPIC_LIMITS.schemaVersionMax);
  if (!["none", "key", "strict"].includes(topic.ordering)) problems.push("ordering must be none, key or strict");
  if (topic.moneyField !== undefined && !MONEY_FIELD.test(topic.moneyField))
    problems.push("moneyField must be the names of members, joined by dots, at most 200 characters");
  problems.push(...retryProblems(topic.retry));
  for (const field of ["sink", ...CARRIERS] as const) {
    const problem = leaseProblem(topic[field], topic.leaseMs);
    if (problem !== null) problems.push(`${field}.timeoutMs ${problem}`);
  }
  return problems;
}

/** Throws `invalid_topic` with every problem in `detail.problems`. */
export function checkTopic(topic: TopicDefinition): void {
  const problems = topicProblems(topic);
  if (problems.length === 0) return;
  throw new MakegoodError("invalid_topic", `topic ${topic.name}: ${problems.join("; ")}`, { topic: topic.name, problems });
}

/** Why an attempt of this sink would outlive its lease; null: it ends before. */
export function leaseProblem(sink: SinkConfig | undefined, leaseMs: number): string | null {
  const roomMs = Math.floor(leaseMs - leaseHeadroomMs(leaseMs));
  if (sink?.timeoutMs === undefined || sink.kind === "function" || sink.timeoutMs <= roomMs) return null;
  return `${sink.timeoutMs} must be at most ${roomMs}: an attempt ends before its lease of ${leaseMs} ms does`;
}

function retryProblems(retry: RetryConfig): string[] {
  const problems: string[] = [];
  if (!RETRY_POLICIES.has(retry.policy)) {
    problems.push(`retry.policy "${retry.policy}" is not registered; there are ${[...RETRY_POLICIES.keys()].join(", ")}`);
  }
  const whole = (field: string, value: number | undefined, min: number, max: number): void => {
    if (value !== undefined && (!Number.isInteger(value) || value < min || value > max)) {
      problems.push(`retry.${field} must be a whole number from ${min} to ${max}`);
    }
  };
  whole("attemptsMax", retry.attemptsMax, 1, LIMITS.attemptsMax);
  whole("baseMs", retry.baseMs, 0, LIMITS.delayMsMax);
  whole("maxMs", retry.maxMs, 0, LIMITS.delayMsMax);
  const full = retryPolicy(retry);
  if (full && full.tableMs === null && full.baseMs > full.maxMs) {
    problems.push(`retry.baseMs (${full.baseMs}) must not be greater than maxMs (${full.maxMs})`);
  }
  if (retry.jitter !== undefined && retry.jitter !== "equal" && retry.jitter !== "none") {
    problems.push("retry.jitter must be equal or none");
  }
  const table = retry.tableMs;
  if (table !== undefined && (table.length === 0 || table.length > LIMITS.attemptsMax)) {
    problems.push(`retry.tableMs must have from 1 to ${LIMITS.attemptsMax} waits`);
  }
  if (table?.some((ms) => !Number.isInteger(ms) || ms < 0 || ms > LIMITS.delayMsMax)) {
    problems.push(`retry.tableMs must hold whole numbers from 0 to ${LIMITS.delayMsMax}`);
  }
  return problems;
}
