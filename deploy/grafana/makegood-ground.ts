/** Rows about what messages stand on: conservation, stores and the ladder, settlement, jobs, audit and evidence. */
import { grown, level, quantile, rate, total } from "./ask.ts";
import type { Row } from "./dashboard.ts";
import { bars, firing, lanes, lines, stacked, stat } from "./panel.ts";

const UP = { "0": ["down", "red"], "1": ["up", "green"] } as const;
const SURVIVES = { "0": ["nothing", "red"], "1": ["a crash", "orange"], "2": ["a power loss", "green"] } as const;

const was = (state: string) => level("makegood_conservation_state", { where: { state } });

export const conservation: Row = {
  title: "Conservation: is everything there that was accepted?",
  panels: [
    stat("What was accepted is", `2 * ${was("broken")} + ${was("unknown")}`, {
      says: "What the last pass over everything that was accepted found.",
      alert: "MakegoodConservationBroken",
      words: { "0": ["whole", "green"], "1": ["not proven", "orange"], "2": ["BROKEN", "red"] },
    }),
    stat("What does not add up", level("makegood_conservation_divergences"), {
      says: "Divergences, as they were last seen.",
      alert: "MakegoodConservationBroken",
    }),
    stat("Last proven", level("makegood_conservation_age_seconds", { take: "min" }), {
      says: "Since a pass last ended.",
      alert: "MakegoodConservationNotProven",
      unit: "s",
    }),
    firing("Makegood.+|Audit.+|M10.+", { says: "All alerts of Makegood.", act: "Follow the page of each, critical ones first." }),
    bars("Passes in an hour", grown("makegood_conservation_passes_total", "1h", { by: ["state"] }), {
      says: "Whole, broken or unknown: unknown is not proven, which is not broken.",
      alert: "MakegoodConservationNotProven",
      limit: undefined,
      width: 12,
    }),
    lines("How long a pass takes, p95", quantile(0.95, "makegood_conservation_pass_seconds"), {
      says: "At most 200 ms a minute are the database's.",
      act: "Longer than a minute: look at the load of the database first.",
      unit: "s",
      width: 12,
    }),
  ],
};

export const stores: Row = {
  title: "Stores and ladder",
  panels: [
    stat("Store", level("makegood_store_up", { take: "min" }), {
      says: "Whether every process could accept a message.",
      alert: "MakegoodStoreDown",
      words: UP,
      least: 1,
    }),
    stat("Accepted survives", level("makegood_store_survives", { take: "min" }), {
      says: "What a message survives that is accepted now, in the worst process.",
      alert: "MakegoodStoreNotDurable",
      words: SURVIVES,
      least: 1,
    }),
    stat("Ladder survives", level("makegood_ladder_survives", { take: "min" }), {
      says: "The same, with what lies below the store.",
      alert: "MakegoodStoreNotDurable",
      words: SURVIVES,
      least: 1,
    }),
    stat("Journal", level("makegood_ladder_journal_refuses"), {
      says: "Whether the journal would take a message.",
      alert: "MakegoodJournalRefuses",
      words: { "0": ["takes", "green"], "1": ["REFUSES", "red"] },
    }),
    stat("Age of the counts", level("makegood_levels_age_seconds", { take: "min" }), {
      says: "Above 90 s gauges of the store are absent.",
      alert: "MakegoodCountsUnknown",
      limit: 90,
      unit: "s",
    }),
    stat("Processes", [{ expr: 'count by (version) (makegood_info{job=~"$job"})', legend: "{{version}}" }], {
      says: "Processes that are scraped, by version.",
      alert: "M10CollectorSilent",
      least: 1,
    }),
    lines("Held below the store", level("makegood_held_below", { by: ["place", "state"] }), {
      says: "Messages in the secondary store, the journal or memory of a process.",
      alert: "MakegoodLadderInUse",
    }),
    lines("Oldest below the store", level("makegood_held_below_oldest_seconds", { by: ["place"] }), {
      says: "Absent is well: nothing lies there.",
      alert: "MakegoodLadderInUse",
      limit: undefined,
      unit: "s",
    }),
    lines(
      "Rungs",
      [
        { expr: rate("makegood_rung_failures_total", { by: ["rung"] }), legend: "{{rung}} failed" },
        { expr: rate("makegood_handed_down_total", { by: ["rung"] }), legend: "{{rung}} took" },
        { expr: rate("makegood_drained_total", { by: ["rung"] }), legend: "{{rung}} moved up" },
      ],
      { says: "Where deliver() stored, and what moved up again.", alert: "MakegoodLadderInUse", limit: undefined, unit: "cps" },
    ),
    lines("Errors of the store", rate("makegood_store_errors_total", { by: ["during"] }), {
      says: "Calls that failed, by what was being done.",
      alert: "MakegoodStoreDown",
      unit: "cps",
    }),
    lanes("Findings", total("makegood_findings", ["what", "severity"], { by: ["what", "severity"] }), {
      says: "What is not as it should be; `/health` says each in a sentence. Empty is well.",
      act: "`makegood doctor`, and `/health` of the process.",
      words: { "1": ["found", "orange"] },
      limit: 1,
      width: 8,
    }),
    lanes("Sources of gauges", level("makegood_source_up", { by: ["source"] }), {
      says: "A source that does not answer takes its gauges with it.",
      alert: "MakegoodSourceSilent",
      words: UP,
      least: 1,
      width: 8,
    }),
    stacked(
      "Streams",
      [
        { expr: level("makegood_stream_waiting", { by: ["stream"] }), legend: "{{stream}} not given out" },
        { expr: level("makegood_stream_pending", { by: ["stream"] }), legend: "{{stream}} not ended" },
      ],
      {
        says: "Entries of Redis streams that are emptied here.",
        act: "Growing: start what reads them; `makegood streams list audit` for what was refused.",
        width: 24,
      },
    ),
  ],
};

export const settlement: Row = {
  title: "Settlement",
  panels: [
    stat("Unsettled", level("makegood_billing_unsettled"), {
      says: "Obligations that wait to be settled.",
      act: "`makegood messages list --topic billing/finalize` says of each why it waits.",
      width: 6,
    }),
    stat("Oldest unsettled", level("makegood_billing_oldest_seconds"), {
      says: "Not known is well where none waits.",
      act: "Older than an hour: look at the provider and at the breaker of billing/finalize.",
      limit: 3_600,
      unit: "s",
      width: 6,
    }),
    stat("Ready", level("makegood_billing_ready", { take: "min" }), {
      says: "What goes wrong now would be kept, and that was verified.",
      alert: "MakegoodBillingNotReady",
      words: { "0": ["not ready", "red"], "1": ["ready", "green"] },
      least: 1,
      width: 6,
    }),
    stat("Unreadable", level("makegood_billing_unreadable"), {
      says: "Reservations whose payload is gone or cannot be read.",
      alert: "MakegoodBillingNotReady",
      limit: 1,
      width: 6,
    }),
  ],
};

export const jobs: Row = {
  title: "Jobs and retention",
  panels: [
    lines(
      "Runs that failed, in 30 minutes",
      grown("makegood_job_runs_total", "30m", { by: ["job_name"], where: { result: "failed" } }),
      {
        says: "By job.",
        alert: "MakegoodJobFailing",
      },
    ),
    lines("Runs", rate("makegood_job_runs_total", { by: ["job_name", "result"] }), {
      says: "Skipped means that another process leads.",
      act: "A job without a run in any process: start `makegood serve` or `makegood work`.",
      unit: "cps",
    }),
    lines("How long runs take, p95", quantile(0.95, "makegood_job_seconds", { by: ["job_name"] }), {
      says: "By job; each run is bounded.",
      act: "Long runs hold the next ones up: look at the load of the database.",
      unit: "s",
    }),
    bars("What jobs did in an hour", grown("makegood_job_items_total", "1h", { by: ["job_name", "what"] }), {
      says: "By the job's own words.",
      act: "`makegood jobs list` says what each is for.",
    }),
    bars(
      "Archived and retired in an hour",
      [
        { expr: grown("makegood_archived_total", "1h", { by: ["source"] }), legend: "{{source}} archived" },
        { expr: grown("makegood_retired_total", "1h", { by: ["source"] }), legend: "{{source}} retired" },
        { expr: grown("makegood_pruned_total", "1h"), legend: "delivered, pruned" },
      ],
      {
        says: "What went past its retention, by class.",
        act: "`makegood archive verify` says whether what was archived is whole.",
      },
    ),
    lines(
      "Locks",
      [
        { expr: rate("makegood_lock_acquired_total", { by: ["lock_name"] }), legend: "{{lock_name}} taken" },
        { expr: rate("makegood_lock_lost_total", { by: ["lock_name"] }), legend: "{{lock_name}} lost" },
      ],
      {
        says: "Leaderships and locks of jobs. A lost one ended before it was given back; what its job writes after that is refused.",
        act: "Lost ones: a process stood still for longer than 30 s; look at its machine.",
        unit: "cps",
      },
    ),
  ],
};

export const audit: Row = {
  title: "Audit and evidence",
  panels: [
    stat("Audit records that wait", level("makegood_audit_pending"), { says: "Kept and not yet stored.", alert: "AuditDLQHigh" }),
    stat("Audit dead letters", level("makegood_audit_dead_letters"), {
      says: "Nobody has decided on them.",
      alert: "AuditPermanentFailures",
    }),
    lines("Audit writes, by result", rate("makegood_audit_write_attempts_total", { by: ["result"] }), {
      says: "success, fallback, validation_error, failed.",
      alert: "AuditWriteFailureSpike",
      limit: undefined,
      unit: "cps",
    }),
    lines("How long audit records waited, p95", quantile(0.95, "makegood_audit_retry_duration_seconds"), {
      says: "Those that were not stored at once.",
      act: "Growing: the database refused them for as long; see AuditDLQHigh.",
      unit: "s",
    }),
    lines("Blocks of evidence in an hour", grown("makegood_evidence_blocks_total", "1h", { by: ["anchored"] }), {
      says: "Sealed; anchored ones were copied outside.",
      act: "Not anchored: the copy cannot be written (MAKEGOOD_EVIDENCE_COPY); the next run tries again.",
      width: 12,
    }),
    lines("Records that they seal, in an hour", grown("makegood_evidence_rows_total", "1h"), {
      says: "Rows of audit and provenance.",
      act: "`makegood evidence verify` makes all of it again and compares.",
      width: 12,
    }),
  ],
};

const TWO_WEEKS = 14 * 86_400;
const left = (metric: string, by: readonly string[] = []) => `${level(metric, { by, take: "min" })} - time()`;
const ahead = { least: TWO_WEEKS, unit: "s" };

export const expiry: Row = {
  title: "What ends",
  panels: [
    lines("Certificates of receivers, time left", left("makegood_certificate_expires_timestamp_seconds", ["topic"]), {
      says: "By topic, as it was at the last connection. Absent: not https, or no connection was made.",
      alert: "MakegoodCertificateExpires",
      ...ahead,
    }),
    lines("Certificate of the store, time left", left("makegood_store_certificate_expires_timestamp_seconds"), {
      says: "As it was at the last connection to PostgreSQL. Absent: no TLS, or Redis.",
      alert: "MakegoodStoreCertificateExpires",
      ...ahead,
    }),
    lines("Tokens, time left", left("makegood_token_expires_timestamp_seconds", ["token"]), {
      says: "By name. Absent: the token does not end.",
      alert: "MakegoodTokenExpires",
      ...ahead,
    }),
  ],
};
