/** Ours: delivery, stores and the ladder, decisions, proof. */
import { type Alert, alert, type Group } from "./alert.ts";

/** 99.9% of what is settled is delivered; what died is what was promised and not kept. */
const BUDGET = 0.001;
const died = (window: string) =>
  `sum(rate(makegood_died_total[${window}])) / (sum(rate(makegood_attempts_total{outcome="delivered"}[${window}])) + sum(rate(makegood_died_total[${window}])))`;
const burning = (window: string, factor: number) => `${died(window)} > ${+(factor * BUDGET).toFixed(4)}`;
const ended = (dead: string) => ({
  'makegood_died_total{topic="a/b"}': dead,
  'makegood_attempts_total{topic="a/b",outcome="delivered"}': "0+95x500",
});
const burn = (name: string, severity: Alert["severity"], factor: number, [long, short]: readonly [string, string]): Alert =>
  alert(name, severity, "2m", `${burning(long, factor)} and ${burning(short, factor)}`, {
    summary: `Messages die ${factor} times as fast as 99.9% allows, over ${long} and ${short}`,
    means:
      "Of what ends, too much ends as a dead letter: promises are being broken, and it still goes on, because both windows hold.",
    look: "`makegood groups list --open --order size`: what they die of, the largest first; makegood_died_total by topic says whose receiver it is.",
    act: "End the cause: the receiver of the largest group, a credential, a schema. Pause the topic (`makegood topics pause <topic>`) where it cannot be mended soon: what waits spends no attempts. Then [redrive the group](../flood-of-dead-letters.md).",
    over: "The short window is below the threshold; what died is redriven.",
    fires: { series: ended("0+5x500") },
    quiet: { series: ended("0x500") },
  });

export const ours: readonly Group[] = [
  {
    name: "makegood_delivery",
    alerts: [
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
          means:
            "A topic does not get on, although nobody paused it: what it promised is at least an hour late. Nothing is lost.",
          look: "`makegood topics show <topic>` (the label topic) says its state, `makegood messages list --topic <topic> --status pending` what waits, and `makegood messages show <id>` of one of them has pending_reason and what the last attempts said.",
          act: "By the reason: breaker_open or failing attempts: its receiver, see MakegoodBreakerOpen. no_worker: see MakegoodWorkerGone. rate_limited, and the number falls: it is only slow; raise rate_per_second of the topic if the receiver can take more. A retry that is due later is no fault: the oldest one simply failed often. An ordered topic waits for the first of its key: mend or discard that one.",
          over: "`makegood messages list --topic <topic> --status pending` shows nothing older than an hour.",
          fires: {
            series: { 'makegood_oldest_pending_seconds{topic="a/b"}': "4000x120", 'makegood_topic_paused{topic="a/b"}': "0x120" },
            labels: { topic: "a/b" },
          },
          quiet: {
            series: { 'makegood_oldest_pending_seconds{topic="a/b"}': "4000x120", 'makegood_topic_paused{topic="a/b"}': "1x120" },
          },
        },
      ),
      alert("MakegoodDeadLetterOpen", "warning", "5m", "max by (topic) (makegood_dead_letters) > 0", {
        summary: "A dead letter waits for a decision",
        means:
          "What was promised to the receiver of the topic was not kept: usage that is not billed, a charge that is not settled.",
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
        fires: { series: { 'makegood_breaker_state{topic="a/b"}': "2 1x120" }, labels: { topic: "a/b" } },
        quiet: { series: { 'makegood_breaker_state{topic="a/b"}': "0x120" } },
      }),
      alert(
        "MakegoodWorkerGone",
        "critical",
        "5m",
        'max by (topic) (makegood_topic_held{code="no_worker"}) == 1 and on (topic) max by (topic) (makegood_messages{status="pending"}) > 0',
        {
          summary: "Messages of a topic wait and no worker serves it",
          means:
            "Nothing of the topic is delivered until a process serves it: the one that did is not running, cannot reach the store, or was started without the function of the topic. Messages are kept and spend no attempts.",
          look: "`makegood topics show <topic>` says since when and what is missing; then the processes themselves: `systemctl status makegood`, the pods, their log.",
          act: "Start what serves it: `makegood work --topics <topic>` for a sink that the topic names, for a function the program that declares it. A process that runs and does not serve it was started with other `--topics`, or an older version of the program without the function.",
          over: "`makegood topics show <topic>` has no `held` any more, and the number that waits falls.",
          fires: {
            series: {
              'makegood_topic_held{topic="a/b",code="no_worker"}': "1x120",
              'makegood_messages{topic="a/b",status="pending"}': "3x120",
            },
            labels: { topic: "a/b" },
          },
          quiet: {
            series: {
              'makegood_topic_held{topic="a/b",code="no_worker"}': "1x120",
              'makegood_messages{topic="a/b",status="pending"}': "0x120",
            },
          },
        },
      ),
    ],
  },
  {
    name: "makegood_stores",
    alerts: [
      alert("MakegoodStoreDown", "critical", "1m", "min(makegood_store_up) == 0", {
        summary: "A process cannot accept messages: its store refuses or is away",
        means:
          "The process cannot accept: enqueue() fails and callers get 503 (507 where the disk is full); deliver() keeps what it cannot send in the secondary store, the journal or memory. What was accepted before is not lost.",
        look: "`/health` of the process names the error; `makegood doctor` on its machine looks at the server itself. One process only: its network or its password. All: the server.",
        act: "Bring the store back: [PostgreSQL lost](../postgres-lost.md), [Redis lost](../redis-lost.md), [Sentinel](../redis-sentinel.md), [Cluster](../redis-cluster.md), [disk full](../disk-full.md). Do not restart processes of Makegood: they come back by themselves, and what lies in memory would be gone.",
        over: "`/readyz` of every process is 200, and makegood_held_below is 0 a minute later: what lay below has moved up.",
      }),
      alert(
        "MakegoodStoreNotDurable",
        "critical",
        "1m",
        "min(makegood_store_survives) == 0 or min(makegood_ladder_survives) == 0",
        {
          summary: "What is accepted now would not survive a crash",
          means:
            "What is accepted now, or lies below the store at the moment, is gone when that process or that server ends: messages can be lost.",
          look: "`store.survives` and `deliver` in `/health` say which of the two it is. With Redis: `makegood check-redis --strict`. With PostgreSQL: `makegood doctor` (fsync, full_page_writes).",
          act: "deliver.survives is nothing: messages lie in memory, because neither store nor journal took them; keep that process running, bring the store back (see MakegoodStoreDown), give it a journal (MAKEGOOD_JOURNAL_DIR). store.survives is nothing: the server does not persist; switch it on as `deploy/redis/redis-durable.conf` has it, or fsync = on, before anything else is sent.",
          over: "makegood_store_survives and makegood_ladder_survives are above 0 for every process.",
          fires: { series: { makegood_store_survives: "2x120", makegood_ladder_survives: "0x120" } },
          quiet: { series: { makegood_store_survives: "2x120", makegood_ladder_survives: "1x120" } },
        },
      ),
      // Not by the counter, whose first value is 1: an increase from nothing is none.
      alert("MakegoodStoreLostData", "critical", "0m", 'max(makegood_findings{what="store_lost_data"}) > 0', {
        summary: "A store lost what it had accepted",
        means:
          "What was accepted and not yet delivered is gone from the store: it was emptied, restored, or failed over to an older state. It stays a finding until a person has read it.",
        look: "`/health` says when and what; the log has it as store_lost_data. `makegood verify` on PostgreSQL says how much is missing, `makegood verify --against <file>` which of a producer's own ids.",
        act: "Find what was in flight, and let the producers send it again under the same keys: [restore and prove](../restore-and-prove.md), [Redis lost](../redis-lost.md). Then say that it is known: `makegood store acknowledge-loss --reason '…'`.",
        over: "The finding store_lost_data is gone from `/health`, after a person acknowledged it.",
        fires: { series: { 'makegood_findings{what="store_lost_data",severity="degraded"}': "1x120" } },
        quiet: { series: { 'makegood_findings{what="counts_old",severity="degraded"}': "1x120" } },
      }),
      alert("MakegoodLadderInUse", "warning", "5m", 'sum by (place) (makegood_held_below{state="waiting"}) > 0', {
        summary: "Messages lie below the primary store",
        means:
          "deliver() put them into the secondary store, the journal or memory (the label place), because the primary took nothing for a while. They are not delivered by workers until they have moved up. In memory they end with the process.",
        look: "`deliver.holdings` in `/health`: how many, where, since when. `makegood journal list` on that machine shows those of the journal.",
        act: "Bring the primary back (see MakegoodStoreDown); they move up by themselves. It is back and they stay: their topic is not declared there, or their process has ended and left its journal behind: `makegood journal import` on that machine. Do not restart a process with something in memory.",
        over: "makegood_held_below with state waiting is 0.",
      }),
      alert("MakegoodQuarantinedBelow", "warning", "5m", 'sum by (place) (makegood_held_below{state="quarantined"}) > 0', {
        summary: "Messages below the primary store cannot go up by themselves",
        means:
          "They contradict a message of the store that has their key (same key, another payload), or cannot be read any more. Nobody delivers them until a person has decided; they are kept.",
        look: "`makegood journal list` on the machine of that process says the reason, the topic and the key of each; `makegood messages list --topic <topic> --key <key>` shows the one that is in the store.",
        act: "Compare both. Keep both texts: `makegood journal export > kept.ndjson` writes those of the journal. The one below is right, or both are: enqueue it under a new key. Not readable: the key that sealed it is missing; give MAKEGOOD_SEAL_KEY and run `makegood journal import`. When the last one is decided, stop that process and move its journal directory away; the next start begins a new one.",
        over: "makegood_held_below with state quarantined is 0.",
      }),
      alert("MakegoodJournalRefuses", "critical", "1m", "max(makegood_ladder_journal_refuses) == 1", {
        summary: "The journal is full or cannot be written",
        means:
          "The last safe place is gone. Nothing is lost yet; but if the stores go away now, the next message is only in memory and in the log.",
        look: "`df -h` of MAKEGOOD_JOURNAL_DIR, its owner and rights, and `makegood journal list`: it is full of what waits, or its disk is.",
        act: "Disk full: [make room](../disk-full.md). The journal has reached MAKEGOOD_JOURNAL_BYTES_MAX: bring the store back, so that it empties, and only then think of a larger limit. No right to write: give the directory to the user of the service, restart when nothing lies in memory.",
        over: "makegood_ladder_journal_refuses is 0.",
      }),
      alert(
        "MakegoodCountsUnknown",
        "critical",
        "5m",
        "count(makegood_info) > 0 unless on() count(makegood_levels_age_seconds <= 90) > 0",
        {
          summary: "No process knows the counts of the store",
          means:
            "The gauges of the store are absent: all alerts on them (oldest pending, dead letters, depth) are blind, and would stay silent.",
          look: "`/health` of a process says why: the store does not answer (then MakegoodStoreDown fires, too), or counts_old: counting takes longer than it may. `makegood doctor` names an old transaction or a table that vacuum cannot clean.",
          act: "Bring the store back. Counting is too slow: end the old transaction that doctor names, let autovacuum work; until then look by hand: `makegood topics list`, `makegood messages list --status dead --resolution open`.",
          over: "makegood_levels_age_seconds is below 90 in at least one process.",
          fires: { series: { 'makegood_info{version="1"}': "1x120", makegood_levels_age_seconds: "300x120" } },
          quiet: { series: { 'makegood_info{version="1"}': "1x120", makegood_levels_age_seconds: "3x120" } },
        },
      ),
      alert("MakegoodSourceSilent", "warning", "5m", "max by (source) (makegood_source_up) == 0", {
        summary: "A source of gauges does not answer in any process",
        means:
          "The gauges of one part are absent in every process, and alerts on them blind: `groups` suggestions and groups, `claims` locks, `sizes` archives, `conservation` the proof, `settlement` billing, `stream …` a Redis stream.",
        look: "The label source says which; the log of a process has the error. For a stream: `redis-cli -u <url> PING` of its Redis. For all others: `makegood doctor` (the schema, an old transaction).",
        act: "Bring that server back, or the schema up (`makegood migrate up`). A statement that takes too long: end what `makegood doctor` names.",
        over: "makegood_source_up of that source is 1 somewhere.",
      }),
    ],
  },
  {
    name: "makegood_decisions",
    alerts: [
      alert("MakegoodNewFailureGroup", "info", "0m", "max(makegood_groups_new) > 0", {
        summary: "A kind of failure appeared that was not seen before",
        means:
          "In the last hour the first message died of something that was never seen here. It may be one message, or the beginning of many.",
        look: "`makegood groups list --open --order recent`, then `makegood groups show <group>`: what happened, since when, in which version, what is suggested.",
        act: "A few, for their own sake: [poison message](../poison-message.md). Growing: [flood of dead letters](../flood-of-dead-letters.md). It began with a deployment: roll that back first.",
        over: "An hour after it first appeared, by itself. Deciding about its group is still to be done.",
      }),
      alert("MakegoodRegression", "warning", "0m", "max(makegood_groups_regressed) > 0", {
        summary: "A failure that was resolved came back",
        means:
          "A group that a person had resolved failed again, in the version that should have mended it or a later one. Messages die of it now.",
        look: "`makegood groups list --open --order recent`, `makegood groups show <group>`: which version failed, and when it was resolved.",
        act: "Roll that version back, or mend it again. Then replay what died (`makegood redrive start --group <group> --reason '…' --dry-run` shows how many), and `makegood groups resolve <group> --reason '…'` in the version that mends it.",
        over: "An hour after the last failure of it, by itself; and the group has no open dead letter.",
      }),
      alert("MakegoodApprovalsWaiting", "info", "1h", "max(makegood_approvals_waiting) > 0", {
        summary: "Suggestions have waited for a person for an hour",
        means:
          "Dead letters could be healed now, and nobody has decided. Nothing gets worse by waiting, except for those who wait for their effect.",
        look: "`makegood candidates list --decision pending --order size`, and `makegood candidates show <candidate>`: the reasons, and what an execution would touch.",
        act: "`makegood approve <candidate> --reason '…'` or `makegood reject <candidate> --reason '…'`; the largest first. A rejected one rests for a day.",
        over: "`makegood candidates list --decision pending` is empty.",
      }),
      alert("MakegoodOldestUndecided", "warning", "10m", "max(makegood_oldest_undecided_seconds) > 86400", {
        summary: "A suggestion has waited for a day",
        means:
          "A suggestion has waited for a person for longer than a day. Retention does not take what is undecided, so it also grows.",
        look: "`makegood candidates list --decision pending --order size`; the oldest are at its end.",
        act: "Decide: `makegood approve <candidate> --reason '…'`, `makegood reject <candidate> --reason '…'`, or say that its group is mended: `makegood groups resolve <group> --reason '…'`. It happens every week: nobody looks at suggestions; say whose task it is.",
        over: "makegood_oldest_undecided_seconds is below 86400, or absent.",
      }),
    ],
  },
  {
    name: "makegood_proof",
    alerts: [
      alert("MakegoodConservationBroken", "critical", "0m", "max(makegood_conservation_divergences) > 0", {
        summary: "What was accepted is not all accounted for",
        means:
          "Messages that were accepted are gone, doubled or changed, or the database was set back. This is what the program promises not to happen: treat it as loss of data until it is explained.",
        look: "`makegood verify --last` names each kind with its topic, hour and ids, what it means and what to do. behind_witness or witness_differs: a restore or a failover. day_dropped, message_gone: a person or a program deleted rows.",
        act: "Take a backup of how it is now, before anything is mended. Then do what it names: [restore and prove](../restore-and-prove.md) for a store that was set back; for single messages compare with the producers' own lists, `makegood verify --against <file>`, and let them send what is missing again under the same keys.",
        over: "`makegood verify --full` ends with 0 and says whole.",
      }),
      alert(
        "MakegoodConservationNotProven",
        "warning",
        "10m",
        'max(makegood_conservation_state{state="unknown"}) == 1 or min(makegood_conservation_age_seconds) > 600',
        {
          summary: "Conservation was not proven for ten minutes",
          means:
            "Nothing is known to be lost; but if something were, nobody would know. The passes do not run, or cannot see everything.",
          look: "`makegood verify --last` says the reason: no pass since when, a witness or a journal that cannot be read, an old transaction that holds the comparison back (`makegood doctor` names it).",
          act: "No pass: start a process that runs the jobs (`serve` or `work`), see MakegoodJobFailing. A witness that cannot be read: its path and its rights. An old transaction: end it. Then `makegood verify`.",
          over: "`makegood verify --last` says whole, and makegood_conservation_age_seconds is below 600.",
          fires: { series: { makegood_conservation_age_seconds: "0+60x120" } },
          quiet: {
            series: { makegood_conservation_age_seconds: "30x120", 'makegood_conservation_state{state="unknown"}': "0x120" },
          },
        },
      ),
      alert(
        "MakegoodJobFailing",
        "warning",
        "0m",
        'sum by (job_name) (increase(makegood_job_runs_total{result="failed"}[30m])) > 3',
        {
          summary: "A maintenance job keeps failing",
          means:
            "What this job does by itself does not happen. reclaim-expired: messages of processes that died are not taken over. prune or retire: tables grow. recovery jobs: dead letters are not grouped. verify and seal-evidence: nothing is proven.",
          look: "The label job_name says which; the log of the process that leads has its error. `makegood jobs list` says what each is for; `makegood jobs run <job> --once` runs it by hand and prints the error.",
          act: "An archive that cannot be written: [disk full](../disk-full.md), or the receiver of MAKEGOOD_ARCHIVE. A statement that is ended or waits for a lock: the old transaction that `makegood doctor` names. A table that is missing: `makegood migrate up`.",
          over: "`makegood jobs run <job> --once` ends with 0, and its runs end as done in makegood_job_runs_total.",
          fires: {
            series: { 'makegood_job_runs_total{job_name="prune",result="failed"}': "0+1x120" },
            labels: { job_name: "prune" },
          },
          quiet: { series: { 'makegood_job_runs_total{job_name="prune",result="failed"}': "2x120" } },
        },
      ),
    ],
  },
];
