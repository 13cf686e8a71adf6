/**
 * How topics become the shape of the contract. Secrets go in and never come out.
 */
import type { z } from "zod";
import { REDACTED, shownRetry, shownSink, topic } from "../../contract/topics.ts";
import { type RetryPolicy, retryPolicy } from "../../message/retry-policy.ts";
import type { SinkConfig, TopicRecord } from "../../message/topic.ts";
import { attemptTimeoutMs } from "../../message/validate-topic.ts";
import { holdOf, type Served } from "../../message/worker-note.ts";
import { wireOf } from "./wire.ts";

export type TopicJson = z.output<typeof topic>;

const UNABLE_SHOWN = 10;
const CREDENTIAL = /auth|cookie|token|secret|passw|api-?key|signature|credential/i;
/** Of a policy that nobody here knows. */
const UNKNOWN = retryPolicy({ policy: "exponential" }) as RetryPolicy;

export function topicJson(found: TopicRecord, served: Served): TopicJson {
  const sinkJson = (sink: SinkConfig | undefined) =>
    sink === undefined
      ? null
      : wireOf(shownSink, sink as Pick<SinkConfig, "kind">, {
          url: sink.url ?? null,
          timeout_ms: attemptTimeoutMs(sink, found.leaseMs),
          headers: shownHeaders(sink.headers ?? {}),
          secrets_set: sink.secrets?.length ?? 0,
          on_unknown: sink.onUnknown ?? "retry",
          status_map: sink.statusMap ?? null,
        });
  return wireOf(topic, found, {
    sink: sinkJson(found.sink) as TopicJson["sink"],
    fallback: sinkJson(found.fallback),
    compensation: sinkJson(found.compensation),
    retry: wireOf(shownRetry, { ...(retryPolicy(found.retry) ?? UNKNOWN), policy: found.retry.policy }),
    rate_per_second: found.ratePerSecond ?? null,
    tenant_rate_per_second: found.tenantRatePerSecond ?? null,
    concurrency_total: found.concurrencyTotal ?? null,
    held: holdOf(found, served),
    not_served_by: served.unable(found.name).slice(0, UNABLE_SHOWN),
  });
}

function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, CREDENTIAL.test(name) ? REDACTED : value]));
}
