/**
 * The topics of the server's side, from the registry: one for each type and one for the quarantine. `serve` and `work` declare
 * them on every store that keeps audit records, so that any worker of that store can write what was queued.
 */
import type { DeclaredRetry } from "../../message/retry-policy.ts";
import type { TopicName } from "../../message/topic.ts";
import type { AuditStore } from "../../store/audit.ts";
import { type AnyTopic, topic } from "../../topic/topic.ts";
import { recordSchema } from "./record.ts";
import { AUDIT_NAMESPACE, AUDIT_TYPES, type AuditType, QUARANTINE } from "./registry.ts";
import { quarantineSink, storeSink } from "./store-sink.ts";

export function auditTopic(type: AuditType | typeof QUARANTINE): TopicName {
  return `${AUDIT_NAMESPACE}/${type}`;
}

/**
 * What was queued must not disturb requests: one write at once for each of the seven topics, against a pool of ten, and a rate
 * over all workers by which ten thousand records of one type are through in nine minutes. Requests themselves are not held to it.
 */
const CONCURRENCY = 1;
const RATE_PER_SECOND = 20;
const WRITE_TIMEOUT_MS = 10_000;

/** Empty where the store keeps no audit records. `retry`: instead of the policy `audit`. */
export function auditTopics(audit: AuditStore | null, retry: DeclaredRetry = { policy: "audit" }): AnyTopic[] {
  if (audit === null) return [];
  const common = { retry, concurrency: CONCURRENCY, ratePerSecond: RATE_PER_SECOND, timeoutMs: WRITE_TIMEOUT_MS } as const;
  const types = AUDIT_TYPES.map((kind) =>
    topic(auditTopic(kind.type), { ...common, schema: recordSchema(kind), sink: storeSink(audit, kind) }),
  );
  return [...types, topic(auditTopic(QUARANTINE), { ...common, sink: quarantineSink(audit) })];
}
