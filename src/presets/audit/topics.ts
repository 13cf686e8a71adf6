/**
 * The topics of the server's side, from the registry: one for each type and one for the quarantine. `serve` and `work` declare
 * them on every store that keeps audit records, so that any worker of that store can write what was queued (EV-18).
 */
import { type AnyTopic, topic } from "../../delivery/topic.ts";
import type { RetryConfig } from "../../message/retry-policy.ts";
import type { AuditStore } from "../../store/audit.ts";
import { recordSchema } from "./record.ts";
import { AUDIT_NAMESPACE, AUDIT_TYPES, type AuditType, QUARANTINE } from "./registry.ts";
import { quarantineSink, storeSink } from "./store-sink.ts";

export const QUARANTINE_TOPIC = `${AUDIT_NAMESPACE}/${QUARANTINE}`;

export function auditTopic(type: AuditType): string {
  return `${AUDIT_NAMESPACE}/${type}`;
}

/** Writes to the database at once; the requests that come in meanwhile need its connections, too (DA-27). */
const CONCURRENCY = 4;
const WRITE_TIMEOUT_MS = 10_000;

/** Empty where the store keeps no audit records. `retry`: instead of the policy `audit`. */
export function auditTopics(audit: AuditStore | null, retry: RetryConfig = { policy: "audit" }): AnyTopic[] {
  if (audit === null) return [];
  const common = { retry, concurrency: CONCURRENCY, timeoutMs: WRITE_TIMEOUT_MS } as const;
  const types = AUDIT_TYPES.map((kind) =>
    topic(auditTopic(kind.type), { ...common, schema: recordSchema(kind), sink: storeSink(audit, kind) }),
  );
  return [...types, topic(QUARANTINE_TOPIC, { ...common, sink: quarantineSink(audit) })];
}
