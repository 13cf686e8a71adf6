/**
 * Retention of audit records: lets the audit store drop the months that the policy no longer keeps, and make the next ones.
 * Without a policy nothing is ever dropped.
 */
import type { Events } from "../../observe/events.ts";
import type { MaintenanceJob } from "../../platform/job.ts";
import type { AuditStore } from "../../store/audit.ts";
import type { DepartMonth } from "../../store/evidence.ts";

export interface PruneAuditOptions {
  readonly audit: AuditStore;
  readonly events: Events;
  /** Null: keep everything. */
  readonly keptMs: number | null;
  /** Leaves the record of what went, where there is evidence. */
  readonly departs?: DepartMonth | undefined;
}

const EVERY_MS = 3_600_000;

export function pruneAudit({ audit, events, keptMs, departs }: PruneAuditOptions): MaintenanceJob {
  return {
    name: "prune-audit",
    everyMs: EVERY_MS,
    where: "leader",
    async run() {
      const count = await audit.prune({ keptMs, departs });
      if (count > 0) events.emit({ type: "lifecycle", what: "audit_records_past_retention_dropped", detail: { count } });
    },
  };
}
