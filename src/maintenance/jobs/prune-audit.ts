/**
 * Retention of audit records: lets the audit store archive and drop the months that the policy no longer keeps, and make the next ones.
 * Without a policy nothing is ever dropped.
 */
import type { Events } from "../../observe/events.ts";
import type { MaintenanceJob, Ran } from "../../platform/job.ts";
import type { AuditArchive, AuditStore } from "../../store/audit.ts";
import type { DepartMonth } from "../../store/evidence.ts";

export interface PruneAuditOptions {
  readonly audit: AuditStore;
  readonly events: Events;
  /** Null: keep everything. */
  readonly keptMs: number | null;
  /** Leaves the record of what went, where there is evidence. */
  readonly departs?: DepartMonth | undefined;
  /** Whether their text is kept in the archive, where the store has one, or only the fact. */
  readonly archives: boolean;
}

const EVERY_MS = 3_600_000;

export function pruneAudit({ audit, events, keptMs, departs, archives }: PruneAuditOptions): MaintenanceJob {
  return {
    name: "prune-audit",
    about: "archives and drops months of audit records past their retention that nothing holds",
    rehearses: true,
    everyMs: EVERY_MS,
    where: "leader",
    async run(_, { dryRun, fence: under }): Promise<Ran> {
      if (dryRun) return { counts: { would_delete: await audit.prune({ keptMs, dryRun }) } };
      const total = { archived: 0, bytes: 0 };
      const told: AuditArchive["told"] = ({ rows, bytes }) => {
        if (!archives) return;
        total.archived += rows;
        total.bytes += bytes;
        events.emit({ type: "archived", class: "audit", count: rows, bytes });
      };
      const deleted = await audit.prune({ keptMs, departs, under, archive: { text: archives, told } });
      if (deleted > 0) {
        events.emit({ type: "lifecycle", what: "audit_records_past_retention_dropped", detail: { count: deleted } });
        events.emit({ type: "retired", class: "audit", count: deleted });
      }
      return { counts: { deleted, ...total } };
    },
  };
}
