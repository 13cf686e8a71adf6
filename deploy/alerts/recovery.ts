/** The seeds' fifteen in five groups (REC-34), each group with an absent() of its own (DR-38), and EV-42's nine marked as defaults. */
import { type Alert, alert, type Group, type Row, type Series } from "./alert.ts";

type Page = Pick<Alert, "look" | "act">;
/** Name, severity, held for, rule, what it says; and where it needs more than its group has. */
type Line = readonly [
  name: string,
  severity: Alert["severity"],
  held: string,
  expr: string,
  summary: string,
  more?: Partial<Row>,
];

const group = (name: string, page: Page, lines: readonly Line[]): Group => ({
  name: `m10_recovery_${name}`,
  alerts: lines.map(([name, severity, held, expr, summary, more]) => {
    const told = { summary, means: `${summary}.`, over: "The condition does not hold any more." };
    return alert(name, severity, held, expr, { ...told, ...page, ...more });
  }),
});

const DEFAULT = { default: true };
const cases = (fires: Series, quiet: Series): Pick<Row, "fires" | "quiet"> => ({
  fires: { series: fires },
  quiet: { series: quiet },
});

const gone = (name: string, metric: string, labels = ""): Line => [
  ...([name, "warning", "10m", `absent(${metric})`, `${metric} is not exported by any process`] as const),
  {
    means:
      "The numbers of this group are not known: no process is scraped, its source does not answer, or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
    ...cases({ makegood_info: "1x120" }, { [metric + labels]: "0x120" }),
  },
];

/** More than this share of a counter is of one status. */
const share = (metric: string, status: string, most: number) =>
  `sum(rate(${metric}{status="${status}"}[5m])) / sum(rate(${metric}[5m])) > ${most}`;
const shared = (metric: string, [bad, good]: readonly [string, string], fires: number, quiet: number, more = "") => {
  const at = (badly: number) => ({
    [`${metric}{status="${bad}"${more}}`]: `0+${badly}x120`,
    [`${metric}{status="${good}"${more}}`]: `0+${1_000 - badly}x120`,
  });
  return cases(at(fires), at(quiet));
};
const INGESTED = "recovery_ingest_total";
const ingested = (bad: string, fires: number, quiet: number) =>
  shared(INGESTED, [bad, "accepted"], fires, quiet, ',source="api"');
const PROCESSED = "recovery_worker_processed_total";

const p95 = (metric: string) => `histogram_quantile(0.95, sum by (le) (rate(${metric}_bucket[5m])))`;
/** All of it in the bucket above the bound, or all of it below. */
const slow = (metric: string, above: string, below: string) => {
  const at = (quick: string) => ({
    [`${metric}_bucket{le="${below}"}`]: quick,
    [`${metric}_bucket{le="${above}"}`]: "0+60x120",
    [`${metric}_bucket{le="+Inf"}`]: "0+60x120",
  });
  return cases(at("0x120"), at("0+60x120"));
};
const [TAKING, WORKING, ADDING] = [
  "recovery_ingest_latency_seconds",
  "recovery_worker_processing_seconds",
  "recovery_matview_refresh_duration_seconds",
] as const;

const INGEST: Page = {
  look: "`makegood groups list`, the log (`recovery_ingest`), and `/health` for the store.",
  act: "Errors are the database's: mend it, and failures are taken in again by the loop. Duplicates are a producer that reports twice: give it an idempotency key.",
};
const QUEUE: Page = {
  look: "`makegood topics list` for recovery/evaluate, and `makegood_source_up` for the stream.",
  act: "Start more workers (`makegood work --topics recovery/*`), or mend Redis where the stream is the cause. Nothing is cut off.",
};
const WORKER: Page = {
  look: "`makegood messages list --topic recovery/evaluate --status dead`, and the log of the workers.",
  act: "Mend what the dead letters say, then replay them; start a worker where none runs.",
};
const VIEW: Page = {
  look: '`makegood_job_runs_total{job_name="recovery_counts"}` by result, and the log for that job.',
  act: "Start a worker where none runs; a lock that is never given back ends with its lease. Lists stay right meanwhile and become slower.",
};
const CANDIDATES: Page = {
  look: "`makegood candidates list --decision pending`.",
  act: "Decide: `makegood approve <id>` or `makegood reject <id>`, largest groups first.",
};
const DEAD_LETTERS = {
  ...DEFAULT,
  look: "`makegood groups list --open`.",
  act: "Take the largest group first: its suggestion, or `makegood redrive start --group <group> --dry-run`.",
  ...cases({ 'makegood_dead_letters{topic="a/b"}': "101x120" }, { 'makegood_dead_letters{topic="a/b"}': "100x120" }),
};
const ARCHIVE = {
  ...DEFAULT,
  look: "`makegood_retired_total`, and the retention settings.",
  act: "Wait for retention, or shorten it.",
};
const SILENT = {
  ...DEFAULT,
  look: "The targets page of Prometheus; `curl` the `/metrics` of a process.",
  act: "Start the processes, or mend the scrape: the port, the token.",
  ...cases({ up: "1x120" }, { 'makegood_info{version="1"}': "1x120" }),
};
const [IDLE, FAILED] = [`sum(rate(${PROCESSED}[10m])) == 0`, 'recovery_matview_refresh_total{status="failed"}'];
const waiting = (made: string) => ({ recovery_db_queue_depth: "5x120", [`${PROCESSED}{status="success"}`]: made });

// biome-ignore format: a table
export const recovery: readonly Group[] = [
  group("ingest", INGEST, [
    ["M10IngestErrorRateHigh", "critical", "5m", share(INGESTED, "error", 0.05), "More than 5% of failures could not be taken in", ingested("error", 60, 40)],
    ["M10IngestDuplicateRateHigh", "warning", "10m", share(INGESTED, "duplicate", 0.5), "More than half of what is reported was reported before", ingested("duplicate", 510, 490)],
    ["M10IngestLatencyHigh", "warning", "5m", `${p95(TAKING)} > 1`, "Taking in a failure takes longer than a second", slow(TAKING, "5", "0.5")],
    gone("M10IngestAbsent", INGESTED, '{status="error",source="api"}'),
  ]),
  group("queue", QUEUE, [
    ["M10EnqueueFailureRateHigh", "critical", "5m", share(INGESTED, "error", 0.01), "More than 1% of failures queued no evaluation, because the write that would have queued it failed", ingested("error", 20, 5)],
    ["M10QueueDepthCritical", "critical", "5m", "max(recovery_evaluation_queue_depth) > 5000", "More than 5,000 evaluations wait", DEFAULT],
    ["M10QueuePendingHigh", "warning", "10m", "max(recovery_stream_pending) > 1000", "More than 1,000 entries of the stream were given out and have not ended"],
    ["M10NoStreamConsumers", "critical", "5m", "max(recovery_stream_consumers) == 0", "Nobody reads the recovery stream", DEFAULT],
    gone("M10QueueAbsent", "recovery_evaluation_queue_depth"),
  ]),
  group("worker", WORKER, [
    ["M10WorkerFailureRateHigh", "warning", "10m", share(PROCESSED, "failed", 0.1), "More than 10% of evaluations fail", shared(PROCESSED, ["failed", "success"], 110, 90)],
    ["M10WorkerLatencyHigh", "warning", "10m", `${p95(WORKING)} > 30`, "Evaluations take longer than 30 seconds", slow(WORKING, "60", "15")],
    ["M10WorkerNoActivity", "critical", "10m", `max(recovery_db_queue_depth) > 0 and on() ${IDLE}`, "Evaluations wait and none is made", { ...DEFAULT, ...cases(waiting("7x120"), waiting("0+5x120")) }],
    gone("M10WorkerAbsent", PROCESSED, '{status="success"}'),
  ]),
  group("matview", VIEW, [
    ["M10MatviewVeryStale", "critical", "5m", "min(recovery_matview_age_seconds) > 3600", "The counts of groups were not added up for an hour", DEFAULT],
    ["M10MatviewRefreshFailures", "warning", "0m", `sum(increase(${FAILED}[15m])) > 3`, "Adding up the counts of groups keeps failing", cases({ [FAILED]: "0+1x120" }, { [FAILED]: "2x120" })],
    ["M10MatviewRefreshSlow", "warning", "10m", `${p95(ADDING)} > 30`, "Adding up the counts of groups takes longer than 30 seconds", slow(ADDING, "60", "15")],
    gone("M10MatviewAbsent", "recovery_matview_age_seconds"),
  ]),
  group("candidates", CANDIDATES, [
    ["M10CandidatesPendingBacklog", "warning", "30m", 'max(makegood_candidates{decision="pending"}) > 100', "More than 100 suggestions wait for a decision"],
    ["M10SuggestionLatencyHigh", "warning", "5m", 'max(makegood_oldest_pending_seconds{topic="recovery/evaluate"}) > 300', "A failure has waited for its suggestion for five minutes"],
    gone("M10CandidatesAbsent", "makegood_candidates", '{decision="pending"}'),
  ]),
  group("defaults", WORKER, [
    ["M10OutboxPendingHigh", "warning", "10m", "max(m10_outbox_pending) > 1000", "More than 1,000 messages of recovery wait", DEFAULT],
    ["M10OutboxLagHigh", "warning", "5m", "max(m10_outbox_lag_seconds) > 300", "The oldest message of recovery has waited for five minutes", DEFAULT],
    ["M10DeadLettersHigh", "warning", "15m", "sum(max by (topic) (makegood_dead_letters)) > 100", "More than 100 dead letters are open", DEAD_LETTERS],
    ["M10ArchiveLarge", "info", "1h", "max(m10_archive_size) > 10000", "More than 10,000 settled dead letters are kept", ARCHIVE],
    ["M10CollectorSilent", "critical", "2m", "absent(makegood_info)", "No process of Makegood is scraped", SILENT],
  ]),
];
