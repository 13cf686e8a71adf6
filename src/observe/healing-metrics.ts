/**
 * Recovery in numbers: the way in, the evaluations, what is sent again, and the seeds' outbox, which is the namespace `recovery` (CON-30).
 * The names are the seed's; every label is from a list.
 */
import type { Clock } from "../platform/clock.ts";
import type { Book, Counted, MessageLevel } from "./book.ts";

const EVALUATE = "recovery/evaluate";
const OUTBOX = /^(recovery)\/(.+)$/;
/** The job that adds up the counts of groups: what the seed's materialized view was refreshed for. */
const ADD_UP = "recovery_counts";
const STATES = ["sent", "healed", "failed", "skipped"] as const;

export function healingCounts(book: Book, clock: Clock) {
  const { of, durations } = book;
  let addedUpMs: number | null = null;
  const counted: Counted = {
    recovery_ingest({ status, source, count, queued, ms, detection }) {
      of("recovery_ingest_total").inc([status, source], count);
      if (ms !== null) durations("recovery_ingest_latency_seconds").observe([status], ms / 1_000);
      if (status === "duplicate") of("recovery_ingest_duplicates_total").inc([detection ?? "idempotency_key"], count);
      if (status !== "accepted") return;
      // Queued in the write that took the failure in: no enqueue of this process says so.
      if (queued > 0) of("recovery_ingest_enqueue_total").inc(["queued"], queued);
      if (queued > 0) of("m10_outbox_published_total").inc(["recovery", "evaluate"], queued);
      if (count > queued) of("recovery_ingest_enqueue_total").inc(["not_due"], count - queued);
    },
    redrive({ changed }) {
      for (const state of STATES) of("makegood_redrive_items_total").inc([state], changed[state]);
    },
    accepted({ topic, inserted }) {
      const [, type, event] = OUTBOX.exec(topic) ?? [];
      if (type && event && inserted > 0) of("m10_outbox_published_total").inc([type, event], inserted);
    },
    attempt({ topic, outcome, status, attempt, ms }) {
      const [, type, event] = OUTBOX.exec(topic) ?? [];
      if (!type || !event) return;
      const good = outcome === "delivered" || outcome === "duplicate";
      of(good ? "m10_outbox_processed_total" : "m10_outbox_failed_total").inc([type, event]);
      durations("m10_outbox_processing_seconds").observe([event], ms / 1_000);
      if (status === "delivered") durations("m10_outbox_retry_count").observe([], Math.max(0, attempt - 1));
      if (topic !== EVALUATE) return;
      of("recovery_worker_claimed_total").inc();
      of("recovery_worker_processed_total").inc([good ? "success" : "failed"]);
      durations("recovery_worker_processing_seconds").observe([], ms / 1_000);
    },
    claim_lost: ({ topic }) => inHand(topic),
    unserved: ({ topic }) => inHand(topic),
    job({ name, result, ms }) {
      if (name !== ADD_UP || result === "skipped") return;
      const done = result === "done";
      of("recovery_matview_refresh_total").inc([done ? "success" : "failed"]);
      if (!done) return;
      durations("recovery_matview_refresh_duration_seconds").observe([], ms / 1_000);
      addedUpMs = clock.wallMs();
    },
  };
  function inHand(topic: string): void {
    if (topic === EVALUATE) of("recovery_worker_claimed_total").inc();
  }
  return {
    counted,
    age(): void {
      if (addedUpMs === null) return;
      of("recovery_matview_last_refresh_timestamp").set([], addedUpMs / 1_000);
      of("recovery_matview_age_seconds").set([], Math.max(0, clock.wallMs() - addedUpMs) / 1_000);
    },
  };
}

/** The counts of the store, where they are known. */
export function healingLevels({ of }: Book, counts: readonly MessageLevel[]): void {
  const waits = counts.filter(({ status }) => status === "pending" || status === "processing");
  const sum = (of: readonly MessageLevel[]): number => of.reduce((total, { count }) => total + count, 0);
  const evaluations = waits.filter(({ topic }) => topic === EVALUATE);
  const outbox = waits.filter(({ topic, status }) => OUTBOX.test(topic) && status === "pending");
  of("recovery_evaluation_queue_depth").set([], sum(evaluations));
  of("recovery_db_queue_depth").set([], sum(evaluations.filter(({ status }) => status === "pending")));
  of("m10_outbox_pending").set([], sum(outbox));
  const ages = outbox.flatMap(({ oldestMs }) => oldestMs ?? []);
  // Known, and nothing waits: that is no lag. Something waits and nobody knows since when: absent.
  if (outbox.length === ages.length) of("m10_outbox_lag_seconds").set([], Math.max(0, ...ages) / 1_000);
}
