/**
 * How topics become the shape of the contract. Secrets go in and never come out.
 */
import type { z } from "zod";
import { REDACTED, type topic } from "../../contract/topics.ts";
import { DEFAULTS } from "../../message/limits.ts";
import { retryPolicy } from "../../message/retry-policy.ts";
import type { SinkConfig, TopicRecord } from "../../message/topic.ts";
import { attemptTimeoutMs } from "../../message/validate-topic.ts";
import { holdOf, type Served } from "../../message/worker-note.ts";

export type TopicJson = z.output<typeof topic>;

const UNABLE_SHOWN = 10;
const CREDENTIAL = /auth|cookie|token|secret|passw|api-?key|signature|credential/i;

export function topicJson(found: TopicRecord, served: Served): TopicJson {
  const retry = retryPolicy(found.retry);
  return {
    name: found.name,
    sink: sinkJson(found.sink, found.leaseMs),
    fallback: found.fallback ? sinkJson(found.fallback, found.leaseMs) : null,
    compensation: found.compensation ? sinkJson(found.compensation, found.leaseMs) : null,
    retry: {
      policy: found.retry.policy,
      attempts_max: retry?.attemptsMax ?? DEFAULTS.attemptsMax,
      base_ms: retry?.baseMs ?? DEFAULTS.retryBaseMs,
      max_ms: retry?.maxMs ?? DEFAULTS.retryMaxMs,
      jitter: retry?.jitter ?? "equal",
      table_ms: retry?.tableMs ?? null,
    },
    schema_version: found.schemaVersion,
    lease_ms: found.leaseMs,
    concurrency: found.concurrency,
    tenant_concurrency: found.tenantConcurrency,
    rate_per_second: found.ratePerSecond ?? null,
    tenant_rate_per_second: found.tenantRatePerSecond ?? null,
    concurrency_total: found.concurrencyTotal ?? null,
    ordering: found.ordering,
    paused: found.paused,
    source: found.source,
    revision: found.revision,
    disabled_reason: found.disabledReason,
    breaker: {
      state: found.breaker.state,
      probe_in_ms: found.breaker.probeInMs,
      trips: found.breaker.trips,
      reason: found.breaker.reason,
      tenants: found.breaker.tenants.map(({ tenantId, reason }) => ({ tenant_id: tenantId, reason })),
    },
    held: holdOf(found, served),
    not_served_by: served.unable(found.name).slice(0, UNABLE_SHOWN),
  };
}

function sinkJson(sink: SinkConfig, leaseMs: number): TopicJson["sink"] {
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
