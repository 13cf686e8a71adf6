/**
 * The comparison of a Redis store with itself, both ways: what stands in a set without its message, and messages that stand in none (DF-32). Each
 * transition is one script, so there should be nothing to mend: it is kept as an audit, every ten minutes (REC-38, DR-6).
 */
import type { MaintenanceJob, Ran } from "../../platform/job.ts";

const EVERY_MS = 600_000;

/** A store that can be compared with itself. */
export interface Reconcilable {
  quarantined(look?: boolean | "only"): Promise<{ readonly mended: number; readonly found: readonly unknown[] }>;
}

export function reconcileStore(store: Reconcilable): MaintenanceJob {
  return {
    name: "reconcile",
    about: "compares what is scheduled with what is stored, both ways, and mends it",
    rehearses: true,
    everyMs: EVERY_MS,
    where: "leader",
    async run(_, { dryRun }): Promise<Ran> {
      if (dryRun) return { counts: { would_mend: (await store.quarantined("only")).mended } };
      const { mended, found } = await store.quarantined(true);
      const notes =
        mended > 0 ? [`${mended} were not where they should have been: look for a program that writes these keys`] : [];
      return { counts: { mended, quarantined: found.length }, notes };
    },
  };
}
