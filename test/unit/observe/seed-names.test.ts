/** The seeds' metrics under the seeds' names, from the events and levels that this program has. */
import { expect, it } from "vitest";
import { createEvents } from "../../../src/observe/events.ts";
import type { Level } from "../../../src/observe/level-sources.ts";
import { createMetrics, type Levels } from "../../../src/observe/metrics.ts";
import { CONSUMERS_JOB } from "../../../src/observe/upkeep-metrics.ts";

const UNKNOWN: Levels = { messages: null, breakers: null, ageMs: null, up: null };
const attempt = { type: "attempt", id: "x", attempt: 3, ms: 2_000, code: null, error: null, alert: false } as const;

function scene(levels: Partial<Levels> = {}) {
  const events = createEvents();
  const metrics = createMetrics({ events, version: "0", levels: async () => ({ ...UNKNOWN, ...levels }) });
  const lines = async (): Promise<string[]> => {
    const text = await metrics.text();
    metrics.close();
    return text.split("\n");
  };
  return { events, lines };
}

it("AUD-25, AUD-26, AUD-27, AUD-28: the audit path under the seed's names, with dlq_fallback for what we call fallback", async () => {
  const messages = [
    { topic: "audit/executions", status: "pending", resolution: null, count: 4, oldestMs: 1 },
    { topic: "audit/executions", status: "dead", resolution: "open", count: 2, oldestMs: 1 },
  ];
  const { events, lines } = scene({ messages });
  for (const result of ["success", "fallback"] as const)
    events.emit({ type: "audit", auditType: "executions", result, code: null });
  const id = "01900000-0000-7000-8000-000000000000";
  events.emit({ ...attempt, id, topic: "audit/executions", outcome: "delivered", status: "delivered" });
  events.emit({ ...attempt, id, topic: "audit/executions", outcome: "reject", status: "dead", code: "http_422" });
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'kubernaut_audit_write_attempts_total{audit_type="executions",result="success"} 1',
      'kubernaut_audit_write_attempts_total{audit_type="executions",result="dlq_fallback"} 1',
      'kubernaut_audit_write_failures_total{audit_type="executions"} 1',
      "kubernaut_audit_dlq_depth 4",
      "kubernaut_audit_dlq_messages_in_dead_letter 2",
      'kubernaut_audit_retry_duration_seconds_count{audit_type="executions"} 1',
      'kubernaut_audit_dead_letter_total{audit_type="executions",failure_reason="http_422"} 1',
    ]),
  );
});

it("REC-33: evaluations, claimed and processed, and the counts that are added up instead of a view that is refreshed", async () => {
  const given: Level[] = [
    { name: "recovery_stream_length", value: 7 },
    { name: "recovery_stream_pending", value: 3 },
    { name: "recovery_stream_consumers", value: 2 },
    { name: "recovery_db_queue_stalled", value: 1 },
  ];
  const messages = [
    { topic: "recovery/evaluate", status: "pending", resolution: null, count: 5, oldestMs: 9_000 },
    { topic: "recovery/evaluate", status: "processing", resolution: null, count: 1, oldestMs: 9_000 },
  ];
  const { events, lines } = scene({ given, messages });
  const topic = "recovery/evaluate";
  events.emit({ ...attempt, topic, outcome: "delivered", status: "delivered" });
  events.emit({ ...attempt, topic, outcome: "retry", status: "pending" });
  events.emit({ type: "claim_lost", topic, id: "x", attempt: 1 });
  const run = { type: "job", name: "recovery_counts", ms: 40, counts: {}, error: null } as const;
  events.emit({ ...run, result: "done" });
  events.emit({ ...run, result: "failed" });
  events.emit({ ...run, result: "skipped" });
  const found = await lines();
  expect(found).toEqual(
    expect.arrayContaining([
      "recovery_stream_length 7",
      "recovery_stream_pending 3",
      "recovery_stream_consumers 2",
      "recovery_db_queue_depth 5",
      "recovery_evaluation_queue_depth 6",
      "recovery_db_queue_stalled 1",
      "recovery_worker_claimed_total 3",
      'recovery_worker_processed_total{status="success"} 1',
      'recovery_worker_processed_total{status="failed"} 1',
      "recovery_worker_processing_seconds_count 2",
      'recovery_matview_refresh_total{status="success"} 1',
      'recovery_matview_refresh_total{status="failed"} 1',
      "recovery_matview_refresh_duration_seconds_count 1",
    ]),
  );
  expect(found.some((line) => /^recovery_matview_age_seconds \d/.test(line))).toBe(true);
  expect(found.some((line) => /^recovery_matview_last_refresh_timestamp \d{10}/.test(line))).toBe(true);
});

it("REC-57: locks, archive, replay log, outbox and the removal of dead consumers under the seed's names", async () => {
  const given: Level[] = [
    { name: "makegood_lock_active", value: 1, labels: ["maintenance"] },
    { name: "m10_archive_size", value: 12 },
    { name: "m10_replay_log_size", value: 13 },
  ];
  const messages = [{ topic: "recovery/notice", status: "pending", resolution: null, count: 2, oldestMs: 30_000 }];
  const { events, lines } = scene({ given, messages });
  for (const what of ["acquired", "failed", "released"] as const)
    events.emit({ type: "lock", name: "maintenance", what, ms: what === "released" ? 9_000 : null });
  events.emit({ type: "archived", class: "dead", count: 8, bytes: 100 });
  events.emit({ type: "retired", class: "dead", count: 5 });
  events.emit({ type: "retired", class: "provenance", count: 6 });
  events.emit({ type: "accepted", topic: "recovery/notice", inserted: 3, duplicate: 0 });
  events.emit({ type: "accepted", topic: "shop/orders", inserted: 9, duplicate: 0 });
  events.emit({ ...attempt, topic: "recovery/notice", outcome: "delivered", status: "delivered" });
  events.emit({ ...attempt, topic: "recovery/notice", outcome: "retry", status: "pending" });
  events.emit({ type: "job", name: CONSUMERS_JOB, result: "done", ms: 1, counts: { checked: 4, removed: 1 }, error: null });
  const outbox = '{aggregate_type="recovery",event_type="notice"}';
  const found = await lines();
  expect(found).toEqual(
    expect.arrayContaining([
      'm10_lock_acquired_total{lock_name="maintenance"} 1',
      'm10_lock_failed_total{lock_name="maintenance"} 1',
      'm10_lock_released_total{lock_name="maintenance"} 1',
      'm10_lock_duration_seconds_sum{lock_name="maintenance"} 9',
      'm10_lock_active{lock_name="maintenance"} 1',
      'm10_archive_total{source="dead"} 8',
      "m10_archive_size 12",
      "m10_archive_retention_deleted_total 5",
      "m10_replay_log_size 13",
      "m10_replay_log_retention_deleted_total 6",
      `m10_outbox_published_total${outbox} 3`,
      `m10_outbox_processed_total${outbox} 1`,
      `m10_outbox_failed_total${outbox} 1`,
      "m10_outbox_pending 2",
      "m10_outbox_lag_seconds 30",
      'm10_outbox_processing_seconds_count{event_type="notice"} 2',
      'm10_outbox_retry_count_bucket{le="2"} 1',
      'm10_outbox_retry_count_bucket{le="1"} 0',
      "m10_reclaim_gc_checked_total 4",
      "m10_reclaim_gc_cleaned_total 1",
    ]),
  );
  expect(found.some((line) => line.includes("orders") && line.startsWith("m10_"))).toBe(false);
});

it("jobs, conservation and evidence are counted", async () => {
  const { events, lines } = scene();
  events.emit({ type: "job", name: "archive", result: "done", ms: 500, counts: { moved: 7, left: 0 }, error: null });
  events.emit({ type: "job", name: "archive", result: "skipped", ms: 1, counts: {}, error: null });
  events.emit({ type: "conservation", state: "broken", divergences: 2, reason: "x", ms: 10 });
  events.emit({ type: "evidence", block: "7", rows: 40, anchored: false });
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'makegood_job_runs_total{job_name="archive",result="done"} 1',
      'makegood_job_runs_total{job_name="archive",result="skipped"} 1',
      'makegood_job_seconds_count{job_name="archive"} 1',
      'makegood_job_items_total{job_name="archive",what="moved"} 7',
      'makegood_conservation_passes_total{state="broken"} 1',
      'makegood_conservation_passes_total{state="whole"} 0',
      'makegood_evidence_blocks_total{anchored="no"} 1',
      "makegood_evidence_rows_total 40",
    ]),
  );
});
