/** The seeds' fifteen in five groups (REC-34), each group with an absent() of its own (DR-38), and EV-42's nine marked as defaults. */
import { alert, type Group } from "./alert.ts";

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
const MATVIEW = {
  look: '`makegood_job_runs_total{job_name="recovery_counts"}` by result says whether it fails or does not run; makegood_lock_active says who leads; the log of that process has the error.',
  act: "No process runs the jobs: start `serve` or `work`. It fails: `makegood doctor` (an old transaction, a missing migration). A process that holds the lead and hangs loses it after 30 s. Lists stay right meanwhile and become slower.",
};
const CANDIDATES = {
  look: "`makegood candidates list --decision pending --order size`, `makegood candidates show <candidate>`: why it is suggested, and what it would touch.",
  act: "Decide, the largest first: `makegood approve <candidate> --reason '…'` or `makegood reject <candidate> --reason '…'`. Suggestions do not come: see M10WorkerNoActivity.",
};

export const recovery: readonly Group[] = [
  {
    name: "m10_recovery_ingest",
    alerts: [
      alert(
        "M10IngestErrorRateHigh",
        "critical",
        "5m",
        'sum(rate(recovery_ingest_total{status="error"}[5m])) / sum(rate(recovery_ingest_total[5m])) > 0.05',
        {
          summary: "More than 5% of failures could not be taken in",
          means:
            "Dead letters are kept, and are not grouped: nothing is suggested for them, and nobody sees what belongs together.",
          ...INGEST,
          over: "recovery_ingest_total with status error does not grow any more.",
          fires: {
            series: {
              'recovery_ingest_total{status="error",source="api"}': "0+60x120",
              'recovery_ingest_total{status="accepted",source="api"}': "0+940x120",
            },
          },
          quiet: {
            series: {
              'recovery_ingest_total{status="error",source="api"}': "0+40x120",
              'recovery_ingest_total{status="accepted",source="api"}': "0+960x120",
            },
          },
        },
      ),
      alert(
        "M10IngestDuplicateRateHigh",
        "warning",
        "10m",
        'sum(rate(recovery_ingest_total{status="duplicate"}[5m])) / sum(rate(recovery_ingest_total[5m])) > 0.5',
        {
          summary: "More than half of what is reported was reported before",
          means: "A service reports the same failures again and again. They are counted once; it costs the database.",
          ...INGEST,
          over: "Fewer than half of what is reported are duplicates.",
          fires: {
            series: {
              'recovery_ingest_total{status="duplicate",source="api"}': "0+510x120",
              'recovery_ingest_total{status="accepted",source="api"}': "0+490x120",
            },
          },
          quiet: {
            series: {
              'recovery_ingest_total{status="duplicate",source="api"}': "0+490x120",
              'recovery_ingest_total{status="accepted",source="api"}': "0+510x120",
            },
          },
        },
      ),
      alert(
        "M10IngestLatencyHigh",
        "warning",
        "5m",
        "histogram_quantile(0.95, sum by (le) (rate(recovery_ingest_latency_seconds_bucket[5m]))) > 1",
        {
          summary: "Taking in a failure takes longer than a second",
          means: "Services that report failures wait for it, and may give up; dead letters of the store are grouped later.",
          ...INGEST,
          over: "95% take less than a second.",
          fires: {
            series: {
              'recovery_ingest_latency_seconds_bucket{le="0.5"}': "0x120",
              'recovery_ingest_latency_seconds_bucket{le="5"}': "0+60x120",
              'recovery_ingest_latency_seconds_bucket{le="+Inf"}': "0+60x120",
            },
          },
          quiet: {
            series: {
              'recovery_ingest_latency_seconds_bucket{le="0.5"}': "0+60x120",
              'recovery_ingest_latency_seconds_bucket{le="5"}': "0+60x120",
              'recovery_ingest_latency_seconds_bucket{le="+Inf"}': "0+60x120",
            },
          },
        },
      ),
      alert("M10IngestAbsent", "warning", "10m", "absent(recovery_ingest_total)", {
        summary: "recovery_ingest_total is not exported by any process",
        means:
          "The numbers of this group are not known, and its other alerts are blind: no process is scraped (then M10CollectorSilent fires, too), its source does not answer (makegood_source_up), or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
        ...INGEST,
        over: "recovery_ingest_total is exported again by a process.",
        fires: { series: { makegood_info: "1x120" } },
        quiet: { series: { 'recovery_ingest_total{status="error",source="api"}': "0x120" } },
      }),
    ],
  },
  {
    name: "m10_recovery_queue",
    alerts: [
      alert(
        "M10EnqueueFailureRateHigh",
        "critical",
        "5m",
        'sum(rate(recovery_ingest_total{status="error"}[5m])) / sum(rate(recovery_ingest_total[5m])) > 0.01',
        {
          summary: "More than 1% of failures queued no evaluation, because the write that would have queued it failed",
          means: "Their groups wait for a suggestion until the next failure of the same kind; dead letters themselves are kept.",
          ...QUEUE,
          over: "recovery_ingest_total with status error does not grow any more.",
          fires: {
            series: {
              'recovery_ingest_total{status="error",source="api"}': "0+20x120",
              'recovery_ingest_total{status="accepted",source="api"}': "0+980x120",
            },
          },
          quiet: {
            series: {
              'recovery_ingest_total{status="error",source="api"}': "0+5x120",
              'recovery_ingest_total{status="accepted",source="api"}': "0+995x120",
            },
          },
        },
      ),
      alert("M10QueueDepthCritical", "critical", "5m", "max(recovery_evaluation_queue_depth) > 5000", {
        summary: "More than 5,000 evaluations wait",
        default: true,
        means: "Suggestions come hours late, or not at all: what could heal by itself waits.",
        ...QUEUE,
        over: "recovery_evaluation_queue_depth falls, and is below 5,000.",
      }),
      alert("M10QueuePendingHigh", "warning", "10m", "max(recovery_stream_pending) > 1000", {
        summary: "More than 1,000 entries of the stream were given out and have not ended",
        means:
          "Readers take entries and do not end them: they died, or hang. Others take over after M10_CLAIM_IDLE_MS; those that kill their readers become [dead letters of the stream](../stream-dead-letters.md).",
        ...QUEUE,
        over: "recovery_stream_pending is below 1,000.",
      }),
      alert("M10NoStreamConsumers", "critical", "5m", "max(recovery_stream_consumers) == 0", {
        summary: "Nobody reads the recovery stream",
        default: true,
        means: "What other services put into the stream is not evaluated. It waits in Redis, and Redis grows.",
        ...QUEUE,
        over: "recovery_stream_consumers is 1 or more.",
      }),
      alert("M10QueueAbsent", "warning", "10m", "absent(recovery_evaluation_queue_depth)", {
        summary: "recovery_evaluation_queue_depth is not exported by any process",
        means:
          "The numbers of this group are not known, and its other alerts are blind: no process is scraped (then M10CollectorSilent fires, too), its source does not answer (makegood_source_up), or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
        ...QUEUE,
        over: "recovery_evaluation_queue_depth is exported again by a process.",
        fires: { series: { makegood_info: "1x120" } },
        quiet: { series: { recovery_evaluation_queue_depth: "0x120" } },
      }),
    ],
  },
  {
    name: "m10_recovery_worker",
    alerts: [
      alert(
        "M10WorkerFailureRateHigh",
        "warning",
        "10m",
        'sum(rate(recovery_worker_processed_total{status="failed"}[5m])) / sum(rate(recovery_worker_processed_total[5m])) > 0.1',
        {
          summary: "More than 10% of evaluations fail",
          means: "For one in ten there is no suggestion; after their attempts they become dead letters of recovery/evaluate.",
          ...WORKER,
          over: "Fewer than one in ten fail, and no dead letter of recovery/evaluate is open.",
          fires: {
            series: {
              'recovery_worker_processed_total{status="failed"}': "0+110x120",
              'recovery_worker_processed_total{status="success"}': "0+890x120",
            },
          },
          quiet: {
            series: {
              'recovery_worker_processed_total{status="failed"}': "0+90x120",
              'recovery_worker_processed_total{status="success"}': "0+910x120",
            },
          },
        },
      ),
      alert(
        "M10WorkerLatencyHigh",
        "warning",
        "10m",
        "histogram_quantile(0.95, sum by (le) (rate(recovery_worker_processing_seconds_bucket[5m]))) > 30",
        {
          summary: "Evaluations take longer than 30 seconds",
          means: "Suggestions come late, and leases may run out, so that an evaluation is made twice.",
          ...WORKER,
          over: "95% take less than 30 seconds.",
          fires: {
            series: {
              'recovery_worker_processing_seconds_bucket{le="15"}': "0x120",
              'recovery_worker_processing_seconds_bucket{le="60"}': "0+60x120",
              'recovery_worker_processing_seconds_bucket{le="+Inf"}': "0+60x120",
            },
          },
          quiet: {
            series: {
              'recovery_worker_processing_seconds_bucket{le="15"}': "0+60x120",
              'recovery_worker_processing_seconds_bucket{le="60"}': "0+60x120",
              'recovery_worker_processing_seconds_bucket{le="+Inf"}': "0+60x120",
            },
          },
        },
      ),
      alert(
        "M10WorkerNoActivity",
        "critical",
        "10m",
        "max(recovery_db_queue_depth) > 0 and on() sum(rate(recovery_worker_processed_total[10m])) == 0",
        {
          summary: "Evaluations wait and none is made",
          default: true,
          means: "No dead letter gets a suggestion. Deliveries go on.",
          ...WORKER,
          over: "recovery_worker_processed_total grows, and recovery_db_queue_depth falls.",
          fires: { series: { recovery_db_queue_depth: "5x120", 'recovery_worker_processed_total{status="success"}': "7x120" } },
          quiet: { series: { recovery_db_queue_depth: "5x120", 'recovery_worker_processed_total{status="success"}': "0+5x120" } },
        },
      ),
      alert("M10WorkerAbsent", "warning", "10m", "absent(recovery_worker_processed_total)", {
        summary: "recovery_worker_processed_total is not exported by any process",
        means:
          "The numbers of this group are not known, and its other alerts are blind: no process is scraped (then M10CollectorSilent fires, too), its source does not answer (makegood_source_up), or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
        ...WORKER,
        over: "recovery_worker_processed_total is exported again by a process.",
        fires: { series: { makegood_info: "1x120" } },
        quiet: { series: { 'recovery_worker_processed_total{status="success"}': "0x120" } },
      }),
    ],
  },
  {
    name: "m10_recovery_matview",
    alerts: [
      alert("M10MatviewVeryStale", "critical", "5m", "min(recovery_matview_age_seconds) > 3600", {
        summary: "The counts of groups were not added up for an hour",
        default: true,
        means: "Lists of groups add up what came since then with each question: they stay right, and get slower by the hour.",
        ...MATVIEW,
        over: "recovery_matview_age_seconds is below 3600.",
      }),
      alert(
        "M10MatviewRefreshFailures",
        "warning",
        "0m",
        'sum(increase(recovery_matview_refresh_total{status="failed"}[15m])) > 3',
        {
          summary: "Adding up the counts of groups keeps failing",
          means: "Lists of groups get slower; nothing is wrong in them.",
          ...MATVIEW,
          over: "recovery_matview_refresh_total with status failed does not grow any more.",
          fires: { series: { 'recovery_matview_refresh_total{status="failed"}': "0+1x120" } },
          quiet: { series: { 'recovery_matview_refresh_total{status="failed"}': "2x120" } },
        },
      ),
      alert(
        "M10MatviewRefreshSlow",
        "warning",
        "10m",
        "histogram_quantile(0.95, sum by (le) (rate(recovery_matview_refresh_duration_seconds_bucket[5m]))) > 30",
        {
          summary: "Adding up the counts of groups takes longer than 30 seconds",
          means: "It costs the database, and a run that takes longer than its lease is begun again.",
          ...MATVIEW,
          over: "95% take less than 30 seconds.",
          fires: {
            series: {
              'recovery_matview_refresh_duration_seconds_bucket{le="15"}': "0x120",
              'recovery_matview_refresh_duration_seconds_bucket{le="60"}': "0+60x120",
              'recovery_matview_refresh_duration_seconds_bucket{le="+Inf"}': "0+60x120",
            },
          },
          quiet: {
            series: {
              'recovery_matview_refresh_duration_seconds_bucket{le="15"}': "0+60x120",
              'recovery_matview_refresh_duration_seconds_bucket{le="60"}': "0+60x120",
              'recovery_matview_refresh_duration_seconds_bucket{le="+Inf"}': "0+60x120",
            },
          },
        },
      ),
      alert("M10MatviewAbsent", "warning", "10m", "absent(recovery_matview_age_seconds)", {
        summary: "recovery_matview_age_seconds is not exported by any process",
        means:
          "The numbers of this group are not known, and its other alerts are blind: no process is scraped (then M10CollectorSilent fires, too), its source does not answer (makegood_source_up), or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
        ...MATVIEW,
        over: "recovery_matview_age_seconds is exported again by a process.",
        fires: { series: { makegood_info: "1x120" } },
        quiet: { series: { recovery_matview_age_seconds: "0x120" } },
      }),
    ],
  },
  {
    name: "m10_recovery_candidates",
    alerts: [
      alert("M10CandidatesPendingBacklog", "warning", "30m", 'max(makegood_candidates{decision="pending"}) > 100', {
        summary: "More than 100 suggestions wait for a decision",
        means: "Dead letters could be healed, and wait for a person.",
        ...CANDIDATES,
        over: "Fewer than 100 wait.",
      }),
      alert(
        "M10SuggestionLatencyHigh",
        "warning",
        "5m",
        'max(makegood_oldest_pending_seconds{topic="recovery/evaluate"}) > 300',
        {
          summary: "A failure has waited for its suggestion for five minutes",
          means: "A person who looks at a new group finds no suggestion yet.",
          ...CANDIDATES,
          over: "makegood_oldest_pending_seconds of recovery/evaluate is below 300.",
        },
      ),
      alert("M10CandidatesAbsent", "warning", "10m", "absent(makegood_candidates)", {
        summary: "makegood_candidates is not exported by any process",
        means:
          "The numbers of this group are not known, and its other alerts are blind: no process is scraped (then M10CollectorSilent fires, too), its source does not answer (makegood_source_up), or recovery is off. Where it is off on purpose, leave recovery.yaml out.",
        ...CANDIDATES,
        over: "makegood_candidates is exported again by a process.",
        fires: { series: { makegood_info: "1x120" } },
        quiet: { series: { 'makegood_candidates{decision="pending"}': "0x120" } },
      }),
    ],
  },
  {
    name: "m10_recovery_defaults",
    alerts: [
      alert("M10OutboxPendingHigh", "warning", "10m", "max(m10_outbox_pending) > 1000", {
        summary: "More than 1,000 messages of recovery wait",
        default: true,
        means:
          "What the engine of recovery has to do itself (evaluations, actions, notices) is not done: healing waits, deliveries do not.",
        ...WORKER,
        over: "m10_outbox_pending is below 1,000.",
      }),
      alert("M10OutboxLagHigh", "warning", "5m", "max(m10_outbox_lag_seconds) > 300", {
        summary: "The oldest message of recovery has waited for five minutes",
        default: true,
        means: "What the engine of recovery has to do itself is late; deliveries are not.",
        ...WORKER,
        over: "m10_outbox_lag_seconds is below 300.",
      }),
      alert("M10DeadLettersHigh", "warning", "15m", "sum(max by (topic) (makegood_dead_letters)) > 100", {
        summary: "More than 100 dead letters are open",
        default: true,
        means: "What they asked for has not happened at their receivers. Nothing is lost; each waits for a decision.",
        look: "`makegood groups list --open --order size`: what they died of; `makegood groups show <group>` of the largest.",
        act: "End the cause, then [redrive the group](../flood-of-dead-letters.md); single ones: [poison message](../poison-message.md); of streams/refused: [stream dead letters](../stream-dead-letters.md).",
        over: "Fewer than 100 are open: `makegood messages list --status dead --resolution open`.",
        fires: { series: { 'makegood_dead_letters{topic="a/b"}': "101x120" } },
        quiet: { series: { 'makegood_dead_letters{topic="a/b"}': "100x120" } },
      }),
      alert("M10ArchiveLarge", "info", "1h", "max(m10_archive_size) > 10000", {
        summary: "More than 10,000 settled dead letters are kept",
        default: true,
        means: "They cost room, nothing else.",
        look: "`makegood jobs run prune-settled --once` says how many it deletes; MAKEGOOD_DEAD_KEPT_DAYS how long they are kept (90 days unless set).",
        act: "So many end each day: nothing is to be done. Retention does not run: see MakegoodJobFailing. Too much for the disk: a smaller MAKEGOOD_DEAD_KEPT_DAYS, and an archive (MAKEGOOD_ARCHIVE).",
        over: "m10_archive_size falls with the next retention.",
      }),
      alert("M10CollectorSilent", "critical", "2m", "absent(makegood_info)", {
        summary: "No process of Makegood is scraped",
        default: true,
        means: "Nothing is known of any process: all other alerts are blind, and silent whatever happens.",
        look: "The targets page of Prometheus: is the target there, and what does it answer? Then `curl` the `/metrics` of a process from the machine of Prometheus.",
        act: "Refused: the process does not run, or listens on loopback only; start it, or let it listen. 401: the token of the scrape. No target: the configuration of the scrape. All processes gone: start them, then see whether MakegoodStoreDown fires.",
        over: "makegood_info is there, with as many instances as there are processes.",
        fires: { series: { up: "1x120" } },
        quiet: { series: { 'makegood_info{version="1"}': "1x120" } },
      }),
    ],
  },
];
