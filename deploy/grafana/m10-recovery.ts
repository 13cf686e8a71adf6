/** The seed's dashboard under its own uid: the rows of REC-35 and REC-58, on the seeds' names of our metrics. */
import { grown, level, quantile, rate, total } from "./ask.ts";
import type { Described, Row } from "./dashboard.ts";
import { type About, bars, firing, lines, type Query, stacked, stat } from "./panel.ts";

const percentiles = (metric: string, by: readonly number[]): Query[] =>
  by.map((q) => ({ expr: quantile(q, metric), legend: `p${q * 100}` }));
const seconds = (more: About): About => ({ unit: "s", ...more });
const perSecond = (more: About): About => ({ unit: "cps", ...more });

const overview: Row = {
  title: "Overview",
  panels: [
    stat("Queue depth", level("recovery_evaluation_queue_depth"), {
      says: "Evaluations that wait or are being made.",
      alert: "M10QueueDepthCritical",
    }),
    stat("Stream consumers", level("recovery_stream_consumers"), {
      says: "Who reads the recovery stream. Not known where no stream is used.",
      alert: "M10NoStreamConsumers",
      least: 1,
    }),
    stat(
      "Age of the counts",
      level("recovery_matview_age_seconds", { take: "min" }),
      seconds({ says: "Since the counts of groups were added up: the seed's view.", alert: "M10MatviewVeryStale" }),
    ),
    stat("Not acknowledged", level("recovery_stream_pending"), {
      says: "Entries of the stream that were given to a consumer and have not ended.",
      alert: "M10QueuePendingHigh",
    }),
    stat("Candidates that wait", level("makegood_candidates", { where: { decision: "pending" } }), {
      says: "Suggestions that a person has not decided on.",
      alert: "M10CandidatesPendingBacklog",
    }),
    stat("Stalled in the database", level("recovery_db_queue_stalled"), {
      says: "Evaluations whose claim has run out and that nobody has taken over yet.",
      act: "They are taken over by themselves within a minute while a worker runs. Where the number stays, start one: `makegood work --topics recovery/*`.",
      limit: 1,
    }),
  ],
};

const ingest: Row = {
  title: "Ingest",
  panels: [
    lines(
      "Failures taken in, by status",
      rate("recovery_ingest_total", { by: ["status"] }),
      perSecond({ says: "Accepted, duplicates and errors.", alert: "M10IngestErrorRateHigh", width: 12, limit: undefined }),
    ),
    lines(
      "How long taking in takes",
      percentiles("recovery_ingest_latency_seconds", [0.5, 0.95, 0.99]),
      seconds({ says: "From the report to the write.", alert: "M10IngestLatencyHigh", width: 12 }),
    ),
  ],
};

const queue: Row = {
  title: "Queue",
  panels: [
    stacked(
      "Depth: stream and database",
      [
        { expr: level("recovery_stream_length"), legend: "stream" },
        { expr: level("recovery_db_queue_depth"), legend: "database" },
      ],
      { says: "What waits, by where it lies.", alert: "M10QueueDepthCritical", width: 12 },
    ),
    lines(
      "Evaluations queued",
      rate("recovery_ingest_enqueue_total", { by: ["status"] }),
      perSecond({
        says: "Queued in the same write as the failure, or not due.",
        act: "Nothing queued while failures come in: the groups are paused, resolved, or their suggestion is not a minute old.",
        width: 12,
      }),
    ),
  ],
};

const worker: Row = {
  title: "Worker",
  panels: [
    lines(
      "Claimed",
      rate("recovery_worker_claimed_total"),
      perSecond({ says: "Evaluations that workers had in hand.", alert: "M10WorkerNoActivity" }),
    ),
    lines(
      "Processed, by status",
      rate("recovery_worker_processed_total", { by: ["status"] }),
      perSecond({ says: "Evaluations that ended.", alert: "M10WorkerFailureRateHigh", limit: undefined }),
    ),
    lines(
      "How long an evaluation takes",
      percentiles("recovery_worker_processing_seconds", [0.5, 0.95, 0.99]),
      seconds({ says: "From claim to settled.", alert: "M10WorkerLatencyHigh" }),
    ),
  ],
};

const suggestions: Row = {
  title: "Suggestions and view",
  panels: [
    stacked("Suggestions by decision", level("makegood_candidates", { by: ["decision"] }), {
      says: "Pending, approved and rejected.",
      alert: "M10CandidatesPendingBacklog",
    }),
    lines(
      "Age of the counts",
      level("recovery_matview_age_seconds", { take: "min" }),
      seconds({ says: "It falls to 0 each time that the counts of groups are added up.", alert: "M10MatviewVeryStale" }),
    ),
    lines(
      "How long adding up takes",
      percentiles("recovery_matview_refresh_duration_seconds", [0.5, 0.95]),
      seconds({ says: "Of the job recovery_counts.", alert: "M10MatviewRefreshSlow" }),
    ),
  ],
};

const locks: Row = {
  title: "Locks",
  panels: [
    lines(
      "Acquired, by lock",
      rate("m10_lock_acquired_total", { by: ["lock_name"] }),
      perSecond({
        says: "Leaderships and locks of jobs taken.",
        act: "A lock that is taken again and again changes hands: look for restarts.",
        width: 6,
      }),
    ),
    lines(
      "Held by another",
      rate("m10_lock_failed_total", { by: ["lock_name"] }),
      perSecond({
        says: "Times that another process held the lock. With several processes that is how it should be.",
        act: "With one process only: what held it was killed, and its lease ends within 30 s.",
        width: 6,
      }),
    ),
    lines(
      "Held for, p95",
      quantile(0.95, "m10_lock_duration_seconds", { by: ["lock_name"] }),
      seconds({
        says: "From taken to given back.",
        act: "A job that takes long: `makegood jobs list`, and its lines in the log.",
        width: 6,
      }),
    ),
    stat("Held now", total("m10_lock_active", ["lock_name"]), {
      says: "Locks that a process holds at this moment; the leader of maintenance is one of them.",
      act: "0 means that no process runs the jobs: start `makegood serve` or `makegood work`.",
      least: 1,
      width: 6,
    }),
  ],
};

const outbox: Row = {
  title: "Outbox",
  panels: [
    stat("Pending", level("m10_outbox_pending"), { says: "Messages of recovery/* that wait.", alert: "M10OutboxPendingHigh" }),
    stat(
      "Lag",
      level("m10_outbox_lag_seconds"),
      seconds({ says: "Since the oldest of them was created.", alert: "M10OutboxLagHigh" }),
    ),
    lines(
      "Published, by event",
      rate("m10_outbox_published_total", { by: ["event_type"] }),
      perSecond({
        says: "Messages of recovery/* accepted.",
        act: "`makegood topics list` says which topic of recovery gets them.",
        width: 16,
      }),
    ),
    lines(
      "Processed and failed",
      [
        { expr: rate("m10_outbox_processed_total"), legend: "processed" },
        { expr: rate("m10_outbox_failed_total"), legend: "failed" },
      ],
      perSecond({
        says: "Attempts at them.",
        act: "Failures: `makegood messages list --topic recovery/evaluate --status dead`, and the log of the workers.",
        width: 12,
      }),
    ),
    lines(
      "How long an attempt takes",
      percentiles("m10_outbox_processing_seconds", [0.5, 0.95]),
      seconds({ says: "Of all events together.", act: "Slow: look at the receiver and at the database first.", width: 12 }),
    ),
  ],
};

const archive: Row = {
  title: "Archive and retention",
  panels: [
    stat("Archived dead letters", level("m10_archive_size"), {
      says: "Settled dead letters that are kept; above 100,000 an estimate.",
      alert: "M10ArchiveLarge",
    }),
    stat("Replay log", level("m10_replay_log_size"), {
      says: "Lines of provenance that are kept; above 100,000 an estimate.",
      act: "It is cut by retention: `makegood jobs run retire-provenance --dry-run` says what would go.",
    }),
    lines(
      "Archived, by source",
      rate("m10_archive_total", { by: ["source"] }),
      perSecond({
        says: "Records that went to an archive.",
        act: "None although retention is due: `makegood archive verify`, and MAKEGOOD_ARCHIVE.",
      }),
    ),
    bars(
      "Cleaned up in an hour",
      [
        { expr: grown("m10_archive_retention_deleted_total", "1h"), legend: "archive" },
        { expr: grown("m10_replay_log_retention_deleted_total", "1h"), legend: "replay log" },
        { expr: grown("m10_reclaim_gc_cleaned_total", "1h"), legend: "dead consumers" },
      ],
      { says: "Deleted past their retention.", act: "`makegood jobs list` says when each class was last retired." },
    ),
  ],
};

export const m10Recovery: Described = {
  uid: "m10-recovery",
  title: "Makegood recovery (M10)",
  description: "Recovery from the report of a failure to its suggestion: the rows of the seed.",
  alerts: "M10.+",
  variables: [],
  rows: [
    overview,
    ingest,
    queue,
    worker,
    suggestions,
    locks,
    outbox,
    archive,
    {
      title: "Alerts",
      panels: [
        firing("M10.+", { says: "The alerts of recovery.", act: "Follow the page of each, critical ones first.", width: 24 }),
      ],
    },
  ],
};
