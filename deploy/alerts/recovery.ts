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
    "The numbers of this group are not known: no process is scraped, its source does not answer, or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
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
  look: "`makegood groups list`, the log (`recovery_ingest`), and `/health` for the store.",
  act: "Errors are the database's: mend it, and failures are taken in again by the loop. Duplicates are a producer that reports twice: give it an idempotency key.",
};
const QUEUE = {
  look: "`makegood topics list` for recovery/evaluate, and `makegood_source_up` for the stream.",
  act: "Start more workers (`makegood work --topics recovery/*`), or mend Redis where the stream is the cause. Nothing is cut off.",
};
const WORKER = {
  look: "`makegood messages list --topic recovery/evaluate --status dead`, and the log of the workers.",
  act: "Mend what the dead letters say, then replay them; start a worker where none runs.",
};
const VIEW = {
  look: '`makegood_job_runs_total{job_name="recovery_counts"}` by result, and the log for that job.',
  act: "Start a worker where none runs; a lock that is never given back ends with its lease. Lists stay right meanwhile and become slower.",
};
const CANDIDATES = {
  look: "`makegood candidates list --decision pending`.",
  act: "Decide: `makegood approve <id>` or `makegood reject <id>`, largest groups first.",
};

export const recovery: readonly Group[] = [
  group("ingest", INGEST, [
    {
      name: "M10IngestErrorRateHigh",
      severity: "critical",
      for: "5m",
      expr: `${ratio(`${total}{status="error"}`, total)} > 0.05`,
      summary: "More than 5% of failures could not be taken in",
      fires: { series: ingested("error", 10, 90) },
      quiet: { series: ingested("error", 1, 99) },
    },
    {
      name: "M10IngestDuplicateRateHigh",
      severity: "warning",
      for: "10m",
      expr: `${ratio(`${total}{status="duplicate"}`, total)} > 0.5`,
      summary: "More than half of what is reported was reported before",
      fires: { series: ingested("duplicate", 60, 40) },
      quiet: { series: ingested("duplicate", 10, 90) },
    },
    {
      name: "M10IngestLatencyHigh",
      severity: "warning",
      for: "5m",
      expr: `${p95("recovery_ingest_latency_seconds")} > 1`,
      summary: "Taking in a failure takes longer than a second",
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
      ...level("recovery_evaluation_queue_depth", 5_001, 5_000),
    },
    {
      name: "M10QueuePendingHigh",
      severity: "warning",
      for: "10m",
      expr: "max(recovery_stream_pending) > 1000",
      summary: "More than 1,000 entries of the stream were given out and have not ended",
      ...level("recovery_stream_pending", 1_001, 1_000),
    },
    {
      name: "M10NoStreamConsumers",
      default: true,
      severity: "critical",
      for: "5m",
      expr: "max(recovery_stream_consumers) == 0",
      summary: "Nobody reads the recovery stream",
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
      fires: { series: { [`${processed}{status="failed"}`]: "0+20x120", [`${processed}{status="success"}`]: "0+80x120" } },
      quiet: { series: { [`${processed}{status="failed"}`]: "0+1x120", [`${processed}{status="success"}`]: "0+99x120" } },
    },
    {
      name: "M10WorkerLatencyHigh",
      severity: "warning",
      for: "10m",
      expr: `${p95("recovery_worker_processing_seconds")} > 30`,
      summary: "Evaluations take longer than 30 seconds",
      ...slow("recovery_worker_processing_seconds", "60", "15"),
    },
    {
      name: "M10WorkerNoActivity",
      default: true,
      severity: "critical",
      for: "10m",
      expr: `max(recovery_db_queue_depth) > 0 and on() sum(rate(${processed}[10m])) == 0`,
      summary: "Evaluations wait and none is made",
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
      ...level("recovery_matview_age_seconds", 3_700, 30),
    },
    {
      name: "M10MatviewRefreshFailures",
      severity: "warning",
      for: "0m",
      expr: 'sum(increase(recovery_matview_refresh_total{status="failed"}[15m])) > 3',
      summary: "Adding up the counts of groups keeps failing",
      fires: { series: { 'recovery_matview_refresh_total{status="failed"}': "0+1x120" } },
      quiet: { series: { 'recovery_matview_refresh_total{status="failed"}': "2x120" } },
    },
    {
      name: "M10MatviewRefreshSlow",
      severity: "warning",
      for: "10m",
      expr: `${p95("recovery_matview_refresh_duration_seconds")} > 30`,
      summary: "Adding up the counts of groups takes longer than 30 seconds",
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
      ...level('makegood_candidates{decision="pending"}', 101, 100),
    },
    {
      name: "M10SuggestionLatencyHigh",
      severity: "warning",
      for: "5m",
      expr: 'max(makegood_oldest_pending_seconds{topic="recovery/evaluate"}) > 300',
      summary: "A failure has waited for its suggestion for five minutes",
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
      ...level("m10_outbox_pending", 1_001, 1_000),
    },
    {
      name: "M10OutboxLagHigh",
      default: true,
      severity: "warning",
      for: "5m",
      expr: "max(m10_outbox_lag_seconds) > 300",
      summary: "The oldest message of recovery has waited for five minutes",
      ...level("m10_outbox_lag_seconds", 301, 10),
    },
    {
      name: "M10DeadLettersHigh",
      default: true,
      severity: "warning",
      for: "15m",
      expr: "sum(max by (topic) (makegood_dead_letters)) > 100",
      summary: "More than 100 dead letters are open",
      look: "`makegood groups list --open`.",
      act: "Take the largest group first: its suggestion, or `makegood redrive start --group <group> --dry-run`.",
      ...level('makegood_dead_letters{topic="a/b"}', 101, 100),
    },
    {
      name: "M10ArchiveLarge",
      default: true,
      severity: "info",
      for: "1h",
      expr: "max(m10_archive_size) > 10000",
      summary: "More than 10,000 settled dead letters are kept",
      look: "`makegood_retired_total`, and the retention settings.",
      act: "Wait for retention, or shorten it.",
      ...level("m10_archive_size", 10_001, 10_000),
    },
    {
      name: "M10CollectorSilent",
      default: true,
      severity: "critical",
      for: "2m",
      expr: "absent(makegood_info)",
      summary: "No process of Makegood is scraped",
      look: "The targets page of Prometheus; `curl` the `/metrics` of a process.",
      act: "Start the processes, or mend the scrape: the port, the token.",
      fires: { series: { up: "1x120" } },
      quiet: { series: { 'makegood_info{version="1"}': "1x120" } },
    },
  ]),
];
