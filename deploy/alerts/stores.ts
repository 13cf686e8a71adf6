/** Ours: delivery, stores and the ladder, decisions, proof. */
import { type Alert, alert, type Group } from "./alert.ts";

const TOPIC = { topic: "a/b" };
const at = (metric: string) => `${metric}{topic="a/b"}`;
/** 99.9% of what is settled is delivered; what died is what was promised and not kept. */
const BUDGET = 0.001;
const died = (window: string) =>
  `sum(rate(makegood_died_total[${window}])) / (sum(rate(makegood_attempts_total{outcome="delivered"}[${window}])) + sum(rate(makegood_died_total[${window}])))`;
const burning = (window: string, factor: number) => `${died(window)} > ${+(factor * BUDGET).toFixed(4)}`;
const ended = (dead: string) => ({
  [at("makegood_died_total")]: dead,
  'makegood_attempts_total{topic="a/b",outcome="delivered"}': "0+95x500",
});
const burn = (name: string, severity: Alert["severity"], factor: number, [long, short]: readonly [string, string]): Alert =>
  alert(name, severity, "2m", `${burning(long, factor)} and ${burning(short, factor)}`, {
    summary: `Messages die ${factor} times as fast as 99.9% allows, over ${long} and ${short}`,
    means: "Of what ends, too much ends as a dead letter. Both windows hold, so it still goes on.",
    look: "`makegood groups list --open` for the causes, `makegood_died_total` by topic.",
    act: "Mend the receiver of the largest group, then redrive the group.",
    over: "The short window is below the threshold.",
    fires: { series: ended("0+5x500") },
    quiet: { series: ended("0x500") },
  });

const delivery: readonly Alert[] = [
  burn("MakegoodDeliveryBurnFast", "critical", 14.4, ["1h", "5m"]),
  burn("MakegoodDeliveryBurnSlow", "critical", 6, ["6h", "30m"]),
  burn("MakegoodDeliveryBurnTicket", "warning", 1, ["3d", "6h"]),
  alert(
    "MakegoodOldestPending",
    "warning",
    "10m",
    "max by (topic) (makegood_oldest_pending_seconds) > 3600 unless on (topic) max by (topic) (makegood_topic_paused) == 1",
    {
      summary: "A message has waited for more than an hour",
      means: "A topic does not get on, although nobody paused it.",
      look: "`makegood messages list --status pending` says of each why it waits (pending_reason).",
      act: "Mend what the reason names: receiver, breaker, worker, rate.",
      over: "The oldest pending message is younger than an hour.",
      fires: {
        series: { [at("makegood_oldest_pending_seconds")]: "4000x120", [at("makegood_topic_paused")]: "0x120" },
        labels: TOPIC,
      },
      quiet: { series: { [at("makegood_oldest_pending_seconds")]: "4000x120", [at("makegood_topic_paused")]: "1x120" } },
    },
  ),
  alert("MakegoodDeadLetterOpen", "warning", "5m", "max by (topic) (makegood_dead_letters) > 0", {
    summary: "A dead letter waits for a decision",
    means: "What was promised to the receiver of the topic was not kept: usage that is not billed, a charge that is not settled.",
    look: "`makegood groups list --open`, and `makegood messages list --topic <topic> --status dead --resolution open`.",
    act: "Mend the cause, then `makegood messages replay <id> --reason '…'`, or redrive its group; resolve or discard it with a reason where it is not to be sent.",
    over: "No open dead letter of the topic is left.",
  }),
  // Not 2 alone: from the first probe on, a tenth of a second after it opened, it is half open until it closes.
  alert("MakegoodBreakerOpen", "warning", "5m", "max by (topic) (makegood_breaker_state) > 0", {
    summary: "The breaker of a topic has been open for five minutes",
    means: "The receiver fails; nothing is attempted but a probe now and then, and no attempt is spent.",
    look: "`makegood topics show <topic>` for the reason.",
    act: "Mend the receiver; the breaker closes by itself after good probes.",
    over: "makegood_breaker_state is 0.",
    fires: { series: { [at("makegood_breaker_state")]: "2 1x120" }, labels: TOPIC },
    quiet: { series: { [at("makegood_breaker_state")]: "0x120" } },
  }),
  alert(
    "MakegoodWorkerGone",
    "critical",
    "5m",
    'max by (topic) (makegood_topic_held{code="no_worker"}) == 1 and on (topic) max by (topic) (makegood_messages{status="pending"}) > 0',
    {
      summary: "Messages of a topic wait and no worker serves it",
      means: "The process that serves the topic is not running, or does not have its function.",
      look: "`makegood topics show <topic>`.",
      act: "Start the worker: `makegood work --topics <topic>`, or the program that declares the topic's function.",
      over: "The topic is not held as no_worker.",
      fires: {
        series: {
          'makegood_topic_held{topic="a/b",code="no_worker"}': "1x120",
          'makegood_messages{topic="a/b",status="pending"}': "3x120",
        },
        labels: TOPIC,
      },
      quiet: {
        series: {
          'makegood_topic_held{topic="a/b",code="no_worker"}': "1x120",
          'makegood_messages{topic="a/b",status="pending"}': "0x120",
        },
      },
    },
  ),
];

const stores: readonly Alert[] = [
  alert("MakegoodStoreDown", "critical", "1m", "min(makegood_store_up) == 0", {
    summary: "A process cannot accept messages: its store refuses or is away",
    means: "enqueue() answers 503; deliver() goes down the ladder.",
    look: "`/health` of the process names the error; `makegood doctor`.",
    act: "Bring the store back. What lies below moves up by itself.",
    over: "makegood_store_up is 1 everywhere.",
  }),
  alert("MakegoodStoreNotDurable", "critical", "1m", "min(makegood_store_survives) == 0 or min(makegood_ladder_survives) == 0", {
    summary: "What is accepted now would not survive a crash",
    means: "The store, or the place below it where messages lie now, keeps nothing over a restart.",
    look: "`store.survives` and `deliver` in `/health`; with Redis `makegood check-redis --strict`.",
    act: "Make the store durable; do not restart the process before what lies in memory has moved up.",
    over: "Both are above 0.",
    fires: { series: { makegood_store_survives: "2x120", makegood_ladder_survives: "0x120" } },
    quiet: { series: { makegood_store_survives: "2x120", makegood_ladder_survives: "1x120" } },
  }),
  // Not by the counter, whose first value is 1: an increase from nothing is none.
  alert("MakegoodStoreLostData", "critical", "0m", 'max(makegood_findings{what="store_lost_data"}) > 0', {
    summary: "A store lost what it had accepted",
    means: "It was emptied, restored or failed over to an older state.",
    look: "`/health` says what; the log has it as store_lost_data.",
    act: "Restore, then compare with the producers' own records.",
    over: "A person said that it is known: `makegood store acknowledge-loss`.",
    fires: { series: { 'makegood_findings{what="store_lost_data",severity="degraded"}': "1x120" } },
    quiet: { series: { 'makegood_findings{what="counts_old",severity="degraded"}': "1x120" } },
  }),
  alert("MakegoodLadderInUse", "warning", "5m", 'sum by (place) (makegood_held_below{state="waiting"}) > 0', {
    summary: "Messages lie below the primary store",
    means: "deliver() put them into the secondary store, the journal or memory, because the primary took nothing.",
    look: "`/health`, `deliver.holdings`; `makegood journal list`.",
    act: "Bring the primary back; they move up by themselves. Keep the process running while something lies in memory.",
    over: "makegood_held_below is 0.",
  }),
  alert("MakegoodQuarantinedBelow", "warning", "5m", 'sum by (place) (makegood_held_below{state="quarantined"}) > 0', {
    summary: "Messages below the primary store cannot go up by themselves",
    means: "The store would not take them as they are: they contradict a message that has their key.",
    look: "`makegood journal list`.",
    act: "Compare both, and decide which is right.",
    over: "None is quarantined.",
  }),
  alert("MakegoodJournalRefuses", "critical", "1m", "max(makegood_ladder_journal_refuses) == 1", {
    summary: "The journal is full or cannot be written",
    means: "With the stores away, the next message would only be in memory.",
    look: "`df` of MAKEGOOD_JOURNAL_DIR, and `makegood journal list`.",
    act: "Free the disk or raise MAKEGOOD_JOURNAL_BYTES_MAX, and bring the store back.",
    over: "makegood_ladder_journal_refuses is 0.",
  }),
  alert(
    "MakegoodCountsUnknown",
    "critical",
    "5m",
    "count(makegood_info) > 0 unless on() count(makegood_levels_age_seconds <= 90) > 0",
    {
      summary: "No process knows the counts of the store",
      means: "Gauges of the store are absent: other alerts on them are blind.",
      look: "`/health` of a process; `makegood doctor`.",
      act: "Mend the store: it does not answer, or counting takes longer than it may.",
      over: "makegood_levels_age_seconds is below 90 somewhere.",
      fires: { series: { 'makegood_info{version="1"}': "1x120", makegood_levels_age_seconds: "300x120" } },
      quiet: { series: { 'makegood_info{version="1"}': "1x120", makegood_levels_age_seconds: "3x120" } },
    },
  ),
  alert("MakegoodSourceSilent", "warning", "5m", "max by (source) (makegood_source_up) == 0", {
    summary: "A source of gauges does not answer in any process",
    means: "Its gauges are absent; the label source says which.",
    look: "The log of a process, and the server behind the source: Redis for a stream.",
    act: "Bring that server back.",
    over: "makegood_source_up is 1.",
  }),
];

const decisions: readonly Alert[] = [
  alert("MakegoodNewFailureGroup", "info", "0m", "max(makegood_groups_new) > 0", {
    summary: "A kind of failure appeared that was not seen before",
    means: "In the last hour the first message died of it.",
    look: "`makegood groups list --open`.",
    act: "Read its suggestion, decide.",
    over: "An hour after it first appeared.",
  }),
  alert("MakegoodRegression", "warning", "0m", "max(makegood_groups_regressed) > 0", {
    summary: "A failure that was resolved came back",
    means: "A version in which it should be mended failed with it.",
    look: "`makegood groups list --open`, the group says in which version.",
    act: "Roll back or mend again, then resolve it in the new version.",
    over: "An hour after it came back.",
  }),
  alert("MakegoodApprovalsWaiting", "info", "1h", "max(makegood_approvals_waiting) > 0", {
    summary: "Suggestions have waited for a person for an hour",
    means: "Dead letters could be healed, and nobody has decided.",
    look: "`makegood candidates list --decision pending`.",
    act: "`makegood approve <id>` or `makegood reject <id>`.",
    over: "None waits.",
  }),
  alert("MakegoodOldestUndecided", "warning", "10m", "max(makegood_oldest_undecided_seconds) > 86400", {
    summary: "A suggestion has waited for a day",
    means: "As above, for longer than a day: retention does not take what is undecided, and it grows.",
    look: "`makegood candidates list --decision pending`.",
    act: "Decide, or resolve the group.",
    over: "The oldest is younger than a day.",
  }),
];

const proof: readonly Alert[] = [
  alert("MakegoodConservationBroken", "critical", "0m", "max(makegood_conservation_divergences) > 0", {
    summary: "What was accepted is not all accounted for",
    means: "A pass of conservation found messages that are gone, doubled or changed.",
    look: "`makegood verify --last` names them, with what each means.",
    act: "Keep a backup, do what it names, and compare with the producers' own lists: `makegood verify --against FILE`.",
    over: "`makegood verify --full` says that everything is accounted for.",
  }),
  alert(
    "MakegoodConservationNotProven",
    "warning",
    "10m",
    'max(makegood_conservation_state{state="unknown"}) == 1 or min(makegood_conservation_age_seconds) > 600',
    {
      summary: "Conservation was not proven for ten minutes",
      means: "No pass ended well: nothing is known to be lost, and nothing is known to be there.",
      look: "`makegood verify --last` says what keeps it from being proven.",
      act: "Start a process that runs the jobs; mend what the passes say.",
      over: "A pass ended as whole.",
      fires: { series: { makegood_conservation_age_seconds: "0+60x120" } },
      quiet: { series: { makegood_conservation_age_seconds: "30x120", 'makegood_conservation_state{state="unknown"}': "0x120" } },
    },
  ),
  alert(
    "MakegoodJobFailing",
    "warning",
    "0m",
    'sum by (job_name) (increase(makegood_job_runs_total{result="failed"}[30m])) > 3',
    {
      summary: "A maintenance job keeps failing",
      means: "What it does by itself does not happen: retention, adding up, taking over.",
      look: "The log of that job.",
      act: "Mend what it says.",
      over: "Its runs end as done.",
      fires: {
        series: { 'makegood_job_runs_total{job_name="prune",result="failed"}': "0+1x120" },
        labels: { job_name: "prune" },
      },
      quiet: { series: { 'makegood_job_runs_total{job_name="prune",result="failed"}': "2x120" } },
    },
  ),
];

export const ours: readonly Group[] = [
  { name: "makegood_delivery", alerts: delivery },
  { name: "makegood_stores", alerts: stores },
  { name: "makegood_decisions", alerts: decisions },
  { name: "makegood_proof", alerts: proof },
];
