/**
 * Retention of audit records: lets the audit store drop the months that the policy no longer keeps, and make the next ones.
 * Without a policy nothing is ever dropped.
 */
import type { Events } from "../../observe/events.ts";
import type { MaintenanceJob } from "../../platform/job.ts";
import type { AuditStore } from "../../store/audit.ts";

export interface PruneAuditOptions {
  readonly audit: AuditStore;
  readonly events: Events;
  /** Null: keep everything. */
  readonly keptMs: number | null;
}

const EVERY_MS = 3_600_000;

export function pruneAudit({ audit, events, keptMs }: PruneAuditOptions): MaintenanceJob {
  return {
    name: "prune-audit",
    everyMs: EVERY_MS,
    where: "leader",
    async run() {
      const count = await audit.prune({ keptMs });
      if (count > 0) events.emit({ type: "lifecycle", what: "audit_records_past_retention_dropped", detail: { count } });
    },
  };
}
