/**
 * Every metric, once: its name, what it is, its labels, the seeds' name for it and where its number comes from. The series are made of this
 * table, `docs/reference/metrics.md` is printed from it, and alerts and dashboards may name nothing else.
 */

/**
 * `process`: counted from what happened in this process, from 0. `store`: of the whole system, read from the store, and absent while that
 * does not answer. `here`: how things stand in this process. `source`: as `store`, from a source of its own (`makegood_source_up`).
 */
export type From = "process" | "store" | "here" | "source";

export interface Metric {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly from: From;
  readonly labels: readonly string[];
  /** The seeds' name: exported too, with the same labels. */
  readonly alias?: string | undefined;
  readonly aliasValues?: Readonly<Record<string, string>> | undefined;
  readonly buckets?: readonly number[] | undefined;
  /** Label values that are there from the start, at 0: so that the first one that happens is seen as a change. */
  readonly from0?: readonly (readonly string[])[] | undefined;
}

type More = Partial<Pick<Metric, "alias" | "aliasValues" | "buckets" | "from0" | "from">>;
type Labels = readonly string[];

const counter = (help: string, labels: Labels = [], more: More = {}): Metric =>
  ({ type: "counter", from: "process", help, labels, ...more }) as const;
const gaugeFrom =
  (from: From) =>
  (help: string, labels: Labels = [], alias?: string): Metric => ({ type: "gauge", from, help, labels, alias });
const stored = gaugeFrom("store");
const here = gaugeFrom("here");
const sourced = gaugeFrom("source");
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];
const JOB_SECONDS = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 900, 3_600];
/** Up to a week: an outage of that length is survived, so it must be seen. */
const WAIT_SECONDS = [60, 300, 900, 3_600, 14_400, 86_400, 172_800, 604_800];
const durations = (help: string, labels: Labels = [], more: More = {}): Metric => ({
  ...{ type: "histogram", from: "process", help, labels, buckets: SECONDS },
  ...more,
});
const each = (...values: string[]): readonly (readonly string[])[] => values.map((value) => [value]);
const AUDIT = "kubernaut_audit_";

/** The kernel: what was accepted, attempted and became of it. */
const DELIVERY = {
  makegood_info: here("The version that runs.", ["version"]),
  makegood_accepted_total: counter("Messages accepted by this process.", ["topic"]),
  makegood_duplicates_total: counter("Enqueues that met their own key again.", ["topic"]),
  makegood_attempts_total: counter("Attempts that ended in this process.", ["topic", "outcome"]),
  makegood_attempt_seconds: durations("How long attempts took.", ["topic"]),
  makegood_died_total: counter("Messages that became dead letters in this process.", ["topic"]),
  makegood_unserved_total: counter("Messages given back because this process cannot deliver them.", ["topic", "code"]),
  makegood_claims_total: counter("Claim calls to the store that brought something."),
  makegood_claimed_messages_total: counter("Messages claimed."),
  makegood_reclaimed_total: counter("Messages taken over from an expired lease."),
  makegood_claim_lost_total: counter("Outcomes not written because the claim was lost.", ["topic"]),
  makegood_breaker_trips_total: counter("Breakers opened by this process.", ["topic"]),
  makegood_sinks_disabled_total: counter("Sinks that this process disabled.", ["topic"]),
  makegood_interventions_total: counter("Replays, resolutions, discards and other acts of people.", ["action"]),
  makegood_direct_total: counter("Direct tries of deliver(), by what came of them.", ["topic", "outcome"]),
  makegood_messages: stored("Messages by topic and status; the delivered are not counted.", ["topic", "status"]),
  makegood_dead_letters: stored("Open dead letters.", ["topic"]),
  makegood_oldest_pending_seconds: stored("Since the oldest pending message was created.", ["topic"]),
  makegood_oldest_dead_letter_seconds: stored("Since the oldest open dead letter was created.", ["topic"]),
  makegood_breaker_state: stored("0 closed, 1 half open, 2 open.", ["topic"]),
  makegood_topic_paused: stored("1 while a topic is paused.", ["topic"]),
  makegood_topic_held: stored("1 while nothing of a topic is attempted, by why: topic_paused, no_worker, …", ["topic", "code"]),
} as const satisfies Record<string, Metric>;

/** Stores and the ladder below them. */
const STORES = {
  makegood_store_errors_total: counter("Calls to the store that failed.", ["during"]),
  makegood_store_data_lost_total: counter("Times that a store lost what it had accepted.", ["store"]),
  makegood_store_durability_changes_total: counter("Changes of what accepted messages survive.", ["store", "survives"]),
  makegood_store_up: here("1 when the store would accept an enqueue, 0 when not; absent until it was asked."),
  makegood_store_survives: here("What accepted messages survive: 0 nothing, 1 a process crash, 2 a power loss."),
  makegood_store_checked_age_seconds: here("How long ago the store last said whether it would accept."),
  makegood_levels_age_seconds: here("How old the counts of the store are; above 90 they are not shown any more."),
  makegood_source_up: here("1 when a source of gauges answered lately; at 0 its gauges are absent.", ["source"]),
  makegood_findings: here("What is not as it should be, by kind; /health says each.", ["what", "severity"]),
  makegood_certificate_expires_timestamp_seconds: here(
    "When the certificate of a topic's receiver ends, as this process saw it when it last connected; seconds since 1970.",
    ["topic"],
  ),
  makegood_store_certificate_expires_timestamp_seconds: here(
    "When the certificate of the store's server ends, as this process saw it; absent without TLS, and of Redis.",
  ),
  makegood_token_expires_timestamp_seconds: here("When a token of this server ends; absent where it does not end.", ["token"]),
  makegood_handed_down_total: counter("Messages that deliver() stored, by rung.", ["topic", "rung"]),
  makegood_rung_failures_total: counter("Rungs of the ladder that did not take a message.", ["rung"], {
    from0: each("primary", "secondary", "journal"),
  }),
  makegood_drained_total: counter("Messages moved up from a lower rung.", ["rung"]),
  makegood_absorbed_total: counter("Messages that met their own key and payload on their way up.", ["rung"]),
  makegood_quarantined_total: counter("Messages kept for a person because no store takes them.", ["rung"]),
  makegood_journal_notes_total: counter("What the journal found in its files.", ["what"]),
  makegood_held_below: here("Messages that lie below the primary store, by place (secondary, journal, memory) and state.", [
    "place",
    "state",
  ]),
  makegood_held_below_oldest_seconds: here("Age of the oldest message below the primary store; absent where none lies.", [
    "place",
  ]),
  makegood_ladder_primary_up: here("0 while the primary rung is not open or failed when it was last used."),
  makegood_ladder_survives: here(
    "What everything accepted survives, the worst place counts: 0 nothing, 1 a crash, 2 a power loss.",
  ),
  makegood_ladder_journal_refuses: here("1 while the journal is full or cannot be written."),
  makegood_stream_length: sourced("Entries of a Redis stream that is emptied here.", ["stream"]),
  makegood_stream_waiting: sourced("Entries of the stream that no consumer was given yet.", ["stream"]),
  makegood_stream_pending: sourced("Entries that were given to a consumer and have not ended.", ["stream"]),
  makegood_stream_consumers: sourced("Consumers known to the group; one that died is removed after a while.", ["stream"]),
} as const satisfies Record<string, Metric>;

/** Jobs, retention, conservation and evidence. */
const UPKEEP = {
  makegood_pruned_total: counter("Settled messages deleted after their retention."),
  // Not `job`: Prometheus writes its own target's name there.
  makegood_job_runs_total: counter("Runs of maintenance jobs that ended in this process.", ["job_name", "result"]),
  makegood_job_seconds: durations("How long runs of jobs took.", ["job_name"], { buckets: JOB_SECONDS }),
  makegood_job_items_total: counter("What runs of jobs did, by their own words for it.", ["job_name", "what"]),
  makegood_lock_acquired_total: counter("Locks of jobs taken.", ["lock_name"], { alias: "m10_lock_acquired_total" }),
  makegood_lock_failed_total: counter("Locks that another process held.", ["lock_name"], { alias: "m10_lock_failed_total" }),
  makegood_lock_released_total: counter("Locks given back.", ["lock_name"], { alias: "m10_lock_released_total" }),
  makegood_lock_lost_total: counter("Locks that ended before they were given back.", ["lock_name"]),
  makegood_lock_duration_seconds: durations("How long a lock was held.", ["lock_name"], {
    ...{ alias: "m10_lock_duration_seconds", buckets: JOB_SECONDS },
  }),
  makegood_lock_active: sourced("1 for each lock that a process holds now.", ["lock_name"], "m10_lock_active"),
  makegood_archived_total: counter("Records that went to an archive, by class.", ["source"], { alias: "m10_archive_total" }),
  makegood_archived_bytes_total: counter("Their bytes.", ["source"]),
  makegood_retired_total: counter("Records deleted past their retention, by class.", ["source"]),
  makegood_conservation_passes_total: counter("Passes of conservation, by what they found.", ["state"], {
    from0: each("whole", "broken", "unknown"),
  }),
  makegood_conservation_state: sourced("1 for the state that the last pass left: whole, broken or unknown.", ["state"]),
  makegood_conservation_divergences: sourced("What does not add up, as it was last seen."),
  makegood_conservation_age_seconds: sourced("Since a pass last ended, of any process; absent before the first."),
  makegood_conservation_pass_seconds: durations("How long passes took.", [], { buckets: JOB_SECONDS }),
  makegood_evidence_blocks_total: counter("Blocks of tamper evidence sealed by this process.", ["anchored"]),
  makegood_evidence_rows_total: counter("Records that they seal."),
} as const satisfies Record<string, Metric>;

/** The way of audit records. */
const AUDITS = {
  makegood_audit_write_attempts_total: counter(
    "Audit writes by result: success, fallback, validation_error, failed.",
    ["audit_type", "result"],
    { alias: `${AUDIT}write_attempts_total`, aliasValues: { fallback: "dlq_fallback" } },
  ),
  makegood_audit_write_failures_total: counter(
    "Audit writes that were not stored at once: fallback, validation_error and failed.",
    ["audit_type"],
    { alias: `${AUDIT}write_failures_total` },
  ),
  makegood_audit_retry_duration_seconds: durations(
    "From queueing to stored, for audit records that had to wait.",
    ["audit_type"],
    {
      ...{ alias: `${AUDIT}retry_duration_seconds`, buckets: WAIT_SECONDS },
    },
  ),
  makegood_audit_dead_letter_total: counter(
    "Audit records that became dead letters in this process.",
    ["audit_type", "failure_reason"],
    { alias: `${AUDIT}dead_letter_total` },
  ),
  makegood_audit_pending: stored("Audit records that wait to be stored.", [], `${AUDIT}dlq_depth`),
  makegood_audit_dead_letters: stored("Audit dead letters nobody has decided on.", [], `${AUDIT}dlq_messages_in_dead_letter`),
} as const satisfies Record<string, Metric>;

/** Settlement, where the store holds it. */
const SETTLEMENT = {
  makegood_billing_unsettled: sourced("Obligations that wait to be settled, dead letters included."),
  makegood_billing_oldest_seconds: sourced("Since the oldest of them was created; absent where none waits."),
  makegood_billing_durable: sourced("1 when what goes wrong now would be kept."),
  makegood_billing_ready: sourced("1 when that was also verified, and nothing is unreadable."),
  makegood_billing_unreadable: sourced("Reservations whose payload is gone or cannot be read."),
} as const satisfies Record<string, Metric>;

/** Recovery: the way in, the evaluations, groups and decisions, and what is sent again. */
const HEALING = {
  recovery_ingest_total: counter("Failures taken in, by what came of it and where they came from.", ["status", "source"], {
    from0: ["accepted", "duplicate", "error"].flatMap((status) => ["api", "worker", "stream"].map((source) => [status, source])),
  }),
  recovery_ingest_latency_seconds: durations("How long taking in a failure took.", ["status"]),
  recovery_ingest_duplicates_total: counter("Failures that were counted before, by how that was known.", ["detection_method"]),
  recovery_ingest_enqueue_total: counter("Evaluations: queued in the same write as the failure, or not due.", ["status"], {
    from0: each("queued", "not_due"),
  }),
  recovery_evaluation_queue_depth: stored("Evaluations that wait or are being made."),
  recovery_db_queue_depth: stored("Evaluations that wait."),
  recovery_db_queue_stalled: sourced("Evaluations whose claim has run out and that no process has taken over yet."),
  recovery_stream_length: sourced("Entries of the recovery stream."),
  recovery_stream_pending: sourced("Of them, given to a consumer and not ended."),
  recovery_stream_consumers: sourced("Consumers of the recovery stream."),
  recovery_worker_claimed_total: counter("Evaluations that this process had in hand, whatever came of them."),
  recovery_worker_processed_total: counter("Evaluations that ended in this process.", ["status"], {
    from0: each("success", "failed"),
  }),
  recovery_worker_processing_seconds: durations("How long they took."),
  recovery_matview_age_seconds: here("Since this process last added up the counts of groups; absent where another one does."),
  recovery_matview_last_refresh_timestamp: here("When that was, in seconds since 1970."),
  recovery_matview_refresh_duration_seconds: durations("How long adding up took."),
  recovery_matview_refresh_total: counter("Times that it was tried.", ["status"], { from0: each("success", "failed") }),
  makegood_groups: sourced("Groups of failures: all, and those with open messages.", ["state"]),
  makegood_groups_new: sourced("Groups that first appeared in the last hour."),
  makegood_groups_regressed: sourced("Groups that a person had resolved and that failed again in the last hour."),
  makegood_candidates: sourced("Suggestions by decision: pending, approved, rejected.", ["decision"]),
  makegood_approvals_waiting: sourced("Suggestions with an action that wait for a person's decision."),
  makegood_oldest_undecided_seconds: sourced("Since the oldest of them was made; absent where none waits."),
  makegood_redrives: sourced("Redrives that are planned, running or paused.", ["status"]),
  makegood_redrive_items_total: counter("Messages of redrives, by what this process saw become of them.", ["state"]),
} as const satisfies Record<string, Metric>;

/** The seeds' outbox is the namespace `recovery` of ours (CON-30), its archive the settled dead letters. */
const SEEDS = {
  m10_outbox_published_total: counter("Messages of recovery/* accepted by this process.", ["aggregate_type", "event_type"]),
  m10_outbox_processed_total: counter("Of them, delivered by this process.", ["aggregate_type", "event_type"]),
  m10_outbox_failed_total: counter("Attempts at them that failed.", ["aggregate_type", "event_type"]),
  m10_outbox_processing_seconds: durations("How long attempts at them took.", ["event_type"]),
  m10_outbox_retry_count: durations("Attempts before the one that delivered.", [], { buckets: [0, 1, 2, 3, 5, 10] }),
  m10_outbox_pending: stored("Messages of recovery/* that wait."),
  m10_outbox_lag_seconds: stored("Since the oldest of them was created; 0 where none waits."),
  m10_archive_size: sourced("Settled dead letters that are kept; above 100,000 an estimate."),
  m10_archive_retention_deleted_total: counter("Archived records deleted past their retention."),
  m10_replay_log_size: sourced("Lines of provenance that are kept, which say each replay; above 100,000 an estimate."),
  m10_replay_log_retention_deleted_total: counter("Lines of provenance deleted past their retention."),
  m10_reclaim_gc_checked_total: counter("Consumers of streams looked at."),
  m10_reclaim_gc_cleaned_total: counter("Consumers of streams removed because they were dead."),
} as const satisfies Record<string, Metric>;

export const METRICS = { ...DELIVERY, ...STORES, ...UPKEEP, ...AUDITS, ...SETTLEMENT, ...HEALING, ...SEEDS } as const;

export type MetricName = keyof typeof METRICS;

/** For the page. */
export const CHAPTERS = {
  Delivery: DELIVERY,
  "Stores and the ladder": STORES,
  "Jobs, conservation and evidence": UPKEEP,
  Audit: AUDITS,
  Settlement: SETTLEMENT,
  Recovery: HEALING,
  "The seeds' own": SEEDS,
} as const;

/** All names that a scrape has, the seeds' included. */
export const metricNames = (): string[] =>
  Object.entries<Metric>(METRICS).flatMap(([name, { alias }]) => (alias === undefined ? [name] : [name, alias]));
