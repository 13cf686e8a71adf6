/** The seeds' fifteen in five groups (REC-34), each group with an absent() of its own (DR-38), and EV-42's nine marked as defaults. */
import type { Alert, Group } from "./alert.ts";

type Short = Pick<Alert, "name" | "severity" | "for" | "expr" | "summary" | "fires" | "quiet"> & Partial<Alert>;
const group = (name: string, about: Pick<Alert, "look" | "act">, alerts: readonly Short[]): Group => ({
  name: `m10_recovery_${name}`,
  alerts: alerts.map((one) => ({ means: `${one.summary}.`, over: "The condition does not hold any more.", ...about, ...one })),
});
const gone = (name: string, metric: string, more: string): Short => ({
  ...{ name, severity: "warning", for: "10m", expr: `absent(${metric})` },
  summary: `${metric} is not exported by any process`,
  means:
    "The numbers of this group are not known, and its other alerts are blind: no process is scraped (then M10CollectorSilent fires, too), its source does not answer (makegood_source_up), or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
  over: `${metric} is exported again by a process.`,
  fires: { series: { makegood_info: "1x120" } },
  quiet: { series: { [metric + more]: "0x120" } },
});
const total = "recovery_ingest_total";
const processed = "recovery_worker_processed_total";
const ratio = (of: string, all: string) => `sum(rate(${of}[5m])) / sum(rate(${all}[5m]))`;
const p95 = (metric: string) => `histogram_quantile(0.95, sum by (le) (rate(${metric}_bucket[5m])))`;
const slow = (metric: string, over: string, under: string): Pick<Alert, "fires" | "quiet"> => ({
  fires: {
    series: {
      [`${metric}_bucket{le="${under}"}`]: "0x120",
      [`${metric}_bucket{le="${over}"}`]: "0+60x120",
      [`${metric}_bucket{le="+Inf"}`]: "0+60x120",
    },
  },
  quiet: {
    series: {
      [`${metric}_bucket{le="${under}"}`]: "0+60x120",
      [`${metric}_bucket{le="${over}"}`]: "0+60x120",
      [`${metric}_bucket{le="+Inf"}`]: "0+60x120",
    },
  },
});
const ingested = (bad: string, badly: number, well: number): Series => ({
  [`${total}{status="${bad}",source="api"}`]: `0+${badly}x120`,
  [`${total}{status="accepted",source="api"}`]: `0+${well}x120`,
});
type Series = Alert["fires"]["series"];
const level = (metric: string, bad: number, well: number): Pick<Alert, "fires" | "quiet"> => ({
  fires: { series: { [metric]: `${bad}x120` } },
  quiet: { series: { [metric]: `${well}x120` } },
});

const INGEST = {
  look: "`makegood groups list --order recent`: whether anything comes in. recovery_ingest_total by status and source says who reports (api, worker, stream); `/health` says how the store stands, the log has the error of each that failed.",
  act: "Errors are the database's: mend it ([PostgreSQL lost](../postgres-lost.md), `makegood doctor`); dead letters are taken in again by the loop, what services report over the API they must report again. Duplicates are a service that reports a failure twice: give it an idempotency key. Slow: an old transaction or a full pool, `makegood doctor` names both.",
};
const QUEUE = {
  look: "`makegood topics show recovery/evaluate`: is it served, paused, held? `makegood messages list --topic recovery/evaluate --status pending --limit 5` and `makegood messages show <id>` say why they wait. makegood_source_up says whether the Redis of the stream answers.",
  act: "No worker: start one, `makegood work --topics 'recovery/*'`, or `serve` with MAKEGOOD_STREAMS=recovery for the stream. Served, and it grows: more workers. Redis away: [bring it back](../redis-lost.md). Nothing is cut off at any length; groups and dead letters are kept, only suggestions come later.",
};
const WORKER = {
  look: "`makegood messages list --topic recovery/evaluate --status dead --resolution open`, `makegood messages show <id>` of one; `makegood topics show recovery/evaluate` for who serves it; the log of the workers.",
  act: "No worker: start one, `makegood work --topics 'recovery/*'`. Evaluations fail: a rule or a database; mend what the last error names, then `makegood messages replay <id> --reason '…'`. Slow: the database, `makegood doctor`. Deliveries of other topics do not wait for this.",
};
const VIEW = {
  look: '`makegood_job_runs_total{job_name="recovery_counts"}` by result says whether it fails or does not run; makegood_lock_active says who leads; the log of that process has the error.',
  act: "No process runs the jobs: start `serve` or `work`. It fails: `makegood doctor` (an old transaction, a missing migration). A process that holds the lead and hangs loses it after 30 s. Lists stay right meanwhile and become slower.",
};
const CANDIDATES = {
  look: "`makegood candidates list --decision pending --order size`, `makegood candidates show <candidate>`: why it is suggested, and what it would touch.",
  act: "Decide, the largest first: `makegood approve <candidate> --reason '…'` or `makegood reject <candidate> --reason '…'`. Suggestions do not come: see M10WorkerNoActivity.",
};

export const recovery: readonly Group[] = [
  group("ingest", INGEST, [
    {
      name: "M10IngestErrorRateHigh",
      severity: "critical",
      for: "5m",
      expr: `${ratio(`${total}{status="error"}`, total)} > 0.05`,
      summary: "More than 5% of failures could not be taken in",
      means: "Dead letters are kept, and are not grouped: nothing is suggested for them, and nobody sees what belongs together.",
      over: "recovery_ingest_total with status error does not grow any more.",
      fires: { series: ingested("error", 10, 90) },
      quiet: { series: ingested("error", 1, 99) },
    },
    {
      name: "M10IngestDuplicateRateHigh",
      severity: "warning",
      for: "10m",
      expr: `${ratio(`${total}{status="duplicate"}`, total)} > 0.5`,
      summary: "More than half of what is reported was reported before",
      means: "A service reports the same failures again and again. They are counted once; it costs the database.",
      over: "Fewer than half of what is reported are duplicates.",
      fires: { series: ingested("duplicate", 60, 40) },
      quiet: { series: ingested("duplicate", 10, 90) },
    },
    {
      name: "M10IngestLatencyHigh",
      severity: "warning",
      for: "5m",
      expr: `${p95("recovery_ingest_latency_seconds")} > 1`,
      summary: "Taking in a failure takes longer than a second",
      means: "Services that report failures wait for it, and may give up; dead letters of the store are grouped later.",
      over: "95% take less than a second.",
      ...slow("recovery_ingest_latency_seconds", "5", "0.5"),
    },
    gone("M10IngestAbsent", total, '{status="error",source="api"}'),
  ]),
  group("queue", QUEUE, [
    {
      name: "M10EnqueueFailureRateHigh",
      severity: "critical",
      for: "5m",
      expr: `${ratio(`${total}{status="error"}`, total)} > 0.01`,
      summary: "More than 1% of failures queued no evaluation, because the write that would have queued it failed",
      means: "Their groups wait for a suggestion until the next failure of the same kind; dead letters themselves are kept.",
      over: "recovery_ingest_total with status error does not grow any more.",
      fires: { series: ingested("error", 3, 97) },
      quiet: { series: ingested("error", 1, 999) },
    },
    {
      name: "M10QueueDepthCritical",
      default: true,
      severity: "critical",
      for: "5m",
      expr: "max(recovery_evaluation_queue_depth) > 5000",
      summary: "More than 5,000 evaluations wait",
      means: "Suggestions come hours late, or not at all: what could heal by itself waits.",
      over: "recovery_evaluation_queue_depth falls, and is below 5,000.",
      ...level("recovery_evaluation_queue_depth", 5_001, 5_000),
    },
    {
      name: "M10QueuePendingHigh",
      severity: "warning",
      for: "10m",
      expr: "max(recovery_stream_pending) > 1000",
      summary: "More than 1,000 entries of the stream were given out and have not ended",
      means:
        "Readers take entries and do not end them: they died, or hang. Others take over after M10_CLAIM_IDLE_MS; those that kill their readers become [dead letters of the stream](../stream-dead-letters.md).",
      over: "recovery_stream_pending is below 1,000.",
      ...level("recovery_stream_pending", 1_001, 1_000),
    },
    {
      name: "M10NoStreamConsumers",
      default: true,
      severity: "critical",
      for: "5m",
      expr: "max(recovery_stream_consumers) == 0",
      summary: "Nobody reads the recovery stream",
      means: "What other services put into the stream is not evaluated. It waits in Redis, and Redis grows.",
      over: "recovery_stream_consumers is 1 or more.",
      ...level("recovery_stream_consumers", 0, 1),
    },
    gone("M10QueueAbsent", "recovery_evaluation_queue_depth", ""),
  ]),
  group("worker", WORKER, [
    {
      name: "M10WorkerFailureRateHigh",
      severity: "warning",
      for: "10m",
      expr: `${ratio(`${processed}{status="failed"}`, processed)} > 0.1`,
      summary: "More than 10% of evaluations fail",
      means: "For one in ten there is no suggestion; after their attempts they become dead letters of recovery/evaluate.",
      over: "Fewer than one in ten fail, and no dead letter of recovery/evaluate is open.",
      fires: { series: { [`${processed}{status="failed"}`]: "0+20x120", [`${processed}{status="success"}`]: "0+80x120" } },
      quiet: { series: { [`${processed}{status="failed"}`]: "0+1x120", [`${processed}{status="success"}`]: "0+99x120" } },
    },
    {
      name: "M10WorkerLatencyHigh",
      severity: "warning",
      for: "10m",
      expr: `${p95("recovery_worker_processing_seconds")} > 30`,
      summary: "Evaluations take longer than 30 seconds",
      means: "Suggestions come late, and leases may run out, so that an evaluation is made twice.",
      over: "95% take less than 30 seconds.",
      ...slow("recovery_worker_processing_seconds", "60", "15"),
    },
    {
      name: "M10WorkerNoActivity",
      default: true,
      severity: "critical",
      for: "10m",
      expr: `max(recovery_db_queue_depth) > 0 and on() sum(rate(${processed}[10m])) == 0`,
      summary: "Evaluations wait and none is made",
      means: "No dead letter gets a suggestion. Deliveries go on.",
      over: "recovery_worker_processed_total grows, and recovery_db_queue_depth falls.",
      fires: { series: { recovery_db_queue_depth: "5x120", [`${processed}{status="success"}`]: "7x120" } },
      quiet: { series: { recovery_db_queue_depth: "5x120", [`${processed}{status="success"}`]: "0+5x120" } },
    },
    gone("M10WorkerAbsent", processed, '{status="success"}'),
  ]),
  group("matview", VIEW, [
    {
      name: "M10MatviewVeryStale",
      default: true,
      severity: "critical",
      for: "5m",
      expr: "min(recovery_matview_age_seconds) > 3600",
      summary: "The counts of groups were not added up for an hour",
      means: "Lists of groups add up what came since then with each question: they stay right, and get slower by the hour.",
      over: "recovery_matview_age_seconds is below 3600.",
      ...level("recovery_matview_age_seconds", 3_700, 30),
    },
    {
      name: "M10MatviewRefreshFailures",
      severity: "warning",
      for: "0m",
      expr: 'sum(increase(recovery_matview_refresh_total{status="failed"}[15m])) > 3',
      summary: "Adding up the counts of groups keeps failing",
      means: "Lists of groups get slower; nothing is wrong in them.",
      over: "recovery_matview_refresh_total with status failed does not grow any more.",
      fires: { series: { 'recovery_matview_refresh_total{status="failed"}': "0+1x120" } },
      quiet: { series: { 'recovery_matview_refresh_total{status="failed"}': "2x120" } },
    },
    {
      name: "M10MatviewRefreshSlow",
      severity: "warning",
      for: "10m",
      expr: `${p95("recovery_matview_refresh_duration_seconds")} > 30`,
      summary: "Adding up the counts of groups takes longer than 30 seconds",
      means: "It costs the database, and a run that takes longer than its lease is begun again.",
      over: "95% take less than 30 seconds.",
      ...slow("recovery_matview_refresh_duration_seconds", "60", "15"),
    },
    gone("M10MatviewAbsent", "recovery_matview_age_seconds", ""),
  ]),
  group("candidates", CANDIDATES, [
    {
      name: "M10CandidatesPendingBacklog",
      severity: "warning",
      for: "30m",
      expr: 'max(makegood_candidates{decision="pending"}) > 100',
      summary: "More than 100 suggestions wait for a decision",
      means: "Dead letters could be healed, and wait for a person.",
      over: "Fewer than 100 wait.",
      ...level('makegood_candidates{decision="pending"}', 101, 100),
    },
    {
      name: "M10SuggestionLatencyHigh",
      severity: "warning",
      for: "5m",
      expr: 'max(makegood_oldest_pending_seconds{topic="recovery/evaluate"}) > 300',
      summary: "A failure has waited for its suggestion for five minutes",
      means: "A person who looks at a new group finds no suggestion yet.",
      over: "makegood_oldest_pending_seconds of recovery/evaluate is below 300.",
      ...level('makegood_oldest_pending_seconds{topic="recovery/evaluate"}', 400, 20),
    },
    gone("M10CandidatesAbsent", "makegood_candidates", '{decision="pending"}'),
  ]),
  group("defaults", WORKER, [
    {
      name: "M10OutboxPendingHigh",
      default: true,
      severity: "warning",
      for: "10m",
      expr: "max(m10_outbox_pending) > 1000",
      summary: "More than 1,000 messages of recovery wait",
      means:
        "What the engine of recovery has to do itself (evaluations, actions, notices) is not done: healing waits, deliveries do not.",
      over: "m10_outbox_pending is below 1,000.",
      ...level("m10_outbox_pending", 1_001, 1_000),
    },
    {
      name: "M10OutboxLagHigh",
      default: true,
      severity: "warning",
      for: "5m",
      expr: "max(m10_outbox_lag_seconds) > 300",
      summary: "The oldest message of recovery has waited for five minutes",
      means: "What the engine of recovery has to do itself is late; deliveries are not.",
      over: "m10_outbox_lag_seconds is below 300.",
      ...level("m10_outbox_lag_seconds", 301, 10),
    },
    {
      name: "M10DeadLettersHigh",
      default: true,
      severity: "warning",
      for: "15m",
      expr: "sum(max by (topic) (makegood_dead_letters)) > 100",
      summary: "More than 100 dead letters are open",
      means: "What they asked for has not happened at their receivers. Nothing is lost; each waits for a decision.",
      over: "Fewer than 100 are open: `makegood messages list --status dead --resolution open`.",
      look: "`makegood groups list --open --order size`: what they died of; `makegood groups show <group>` of the largest.",
      act: "End the cause, then [redrive the group](../flood-of-dead-letters.md); single ones: [poison message](../poison-message.md); of streams/refused: [stream dead letters](../stream-dead-letters.md).",
      ...level('makegood_dead_letters{topic="a/b"}', 101, 100),
    },
    {
      name: "M10ArchiveLarge",
      default: true,
      severity: "info",
      for: "1h",
      expr: "max(m10_archive_size) > 10000",
      summary: "More than 10,000 settled dead letters are kept",
      means: "They cost room, nothing else.",
      over: "m10_archive_size falls with the next retention.",
      look: "`makegood jobs run prune-settled --once` says how many it deletes; MAKEGOOD_DEAD_KEPT_DAYS how long they are kept (90 days unless set).",
      act: "So many end each day: nothing is to be done. Retention does not run: see MakegoodJobFailing. Too much for the disk: a smaller MAKEGOOD_DEAD_KEPT_DAYS, and an archive (MAKEGOOD_ARCHIVE).",
      ...level("m10_archive_size", 10_001, 10_000),
    },
    {
      name: "M10CollectorSilent",
      default: true,
      severity: "critical",
      for: "2m",
      expr: "absent(makegood_info)",
      summary: "No process of Makegood is scraped",
      means: "Nothing is known of any process: all other alerts are blind, and silent whatever happens.",
      over: "makegood_info is there, with as many instances as there are processes.",
      look: "The targets page of Prometheus: is the target there, and what does it answer? Then `curl` the `/metrics` of a process from the machine of Prometheus.",
      act: "Refused: the process does not run, or listens on loopback only; start it, or let it listen. 401: the token of the scrape. No target: the configuration of the scrape. All processes gone: start them, then see whether MakegoodStoreDown fires.",
      fires: { series: { up: "1x120" } },
      quiet: { series: { 'makegood_info{version="1"}': "1x120" } },
    },
  ]),
];
