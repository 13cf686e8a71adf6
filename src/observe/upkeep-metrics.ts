/** Jobs, locks, archives, retention, conservation and evidence in numbers, from the events of this process. */
import type { RetiredName } from "../message/retained.ts";
import type { Book, Counted } from "./book.ts";

/** What stands in the seed's `dead_letter_archive` and `replay_log`. */
const ARCHIVE: ReadonlySet<RetiredName> = new Set(["dead"]);
const REPLAYS: ReadonlySet<RetiredName> = new Set(["provenance"]);
/** Consumers of streams that died are removed by a job, and by the doors that see them. */
export const CONSUMERS_JOB = "clean-consumers";
export const CONSUMERS_SEEN = "remove-consumers";

export function upkeepCounts({ of, durations }: Book): Counted {
  return {
    pruned: ({ count }) => of("makegood_pruned_total").inc([], count),
    job({ name, result, ms, counts }) {
      of("makegood_job_runs_total").inc([name, result]);
      if (result !== "skipped") durations("makegood_job_seconds").observe([name], ms / 1_000);
      for (const [what, count] of Object.entries(counts)) {
        if (count > 0) of("makegood_job_items_total").inc([name, what], count);
        if ((name !== CONSUMERS_JOB && name !== CONSUMERS_SEEN) || count <= 0) continue;
        if (what === "checked") of("m10_reclaim_gc_checked_total").inc([], count);
        if (what === "removed") of("m10_reclaim_gc_cleaned_total").inc([], count);
      }
    },
    lock({ name, what, ms }) {
      if (what === "acquired") of("makegood_lock_acquired_total").inc([name]);
      if (what === "failed") of("makegood_lock_failed_total").inc([name]);
      if (what === "released") of("makegood_lock_released_total").inc([name]);
      if (what === "lost") of("makegood_lock_lost_total").inc([name]);
      if (ms !== null && (what === "released" || what === "lost"))
        durations("makegood_lock_duration_seconds").observe([name], ms / 1_000);
    },
    archived({ class: source, count, bytes }) {
      of("makegood_archived_total").inc([source], count);
      of("makegood_archived_bytes_total").inc([source], bytes);
    },
    retired({ class: source, count }) {
      of("makegood_retired_total").inc([source], count);
      if (ARCHIVE.has(source)) of("m10_archive_retention_deleted_total").inc([], count);
      if (REPLAYS.has(source)) of("m10_replay_log_retention_deleted_total").inc([], count);
    },
    conservation({ state, ms }) {
      of("makegood_conservation_passes_total").inc([state]);
      durations("makegood_conservation_pass_seconds").observe([], ms / 1_000);
    },
    evidence({ rows, anchored }) {
      of("makegood_evidence_blocks_total").inc([anchored ? "yes" : "no"]);
      of("makegood_evidence_rows_total").inc([], rows);
    },
  };
}
