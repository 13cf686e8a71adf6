/**
 * Audit records for the tests: one that fits for each type, as a value, as text and as the seam takes it.
 */
import { AUDIT_TYPES, type AuditType } from "../../src/presets/audit/registry.ts";
import type { AuditRecord } from "../../src/store/audit.ts";

export const DATA: Readonly<Record<AuditType, Record<string, unknown>>> = {
  orchestration: { phase: "analysing" },
  "signal-processing": { fingerprint: "f-1" },
  "ai-decisions": { fingerprint: "f-1", confidence: 0.87 },
  executions: { workflow: "restart-pod" },
  notifications: { channel: "slack" },
  effectiveness: { score: 0.5 },
};

export const TYPES: readonly AuditType[] = AUDIT_TYPES.map(({ type }) => type);

export function envelope(eventId: string, type: AuditType = "executions", more: Record<string, unknown> = {}) {
  return {
    event_id: eventId,
    correlation_id: "rr-1",
    occurred_at: "2026-02-03T04:05:06.789Z",
    actor: "test",
    resource: "pod/a",
    outcome: "success",
    data: DATA[type],
    ...more,
  };
}

export function record(eventId: string, type: AuditType = "executions"): AuditRecord {
  const value = envelope(eventId, type);
  return {
    eventId,
    auditType: type,
    correlationId: value.correlation_id,
    occurredAt: new Date(value.occurred_at),
    actor: value.actor,
    resource: value.resource,
    outcome: value.outcome,
    payload: JSON.stringify(value),
  };
}
