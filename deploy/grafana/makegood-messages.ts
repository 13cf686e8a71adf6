/** Rows about messages: delivery, dead letters and what recovery makes of them. */
import { grown, level, quantile, rate, total } from "./ask.ts";
import type { Row } from "./dashboard.ts";
import { bars, lanes, lines, stacked, stat } from "./panel.ts";

const TOPIC = ["topic"];
const pending = { by: TOPIC, where: { status: "pending" } };
const died = grown("makegood_died_total", "1h");

export const delivery: Row = {
  title: "Delivery",
  panels: [
    lines("Accepted", rate("makegood_accepted_total", { by: TOPIC }), {
      says: "Messages that were accepted, by topic.",
      act: "None although producers run: look at makegood_store_up and at the answers that producers get.",
      unit: "cps",
    }),
    lines("Attempts, by outcome", rate("makegood_attempts_total", { by: ["outcome"] }), {
      says: "What receivers answered.",
      act: "`makegood groups list --open` for why they do not succeed; unknown means sent and not answered: it is tried again under the same key.",
      unit: "cps",
    }),
    lines(
      "How long an attempt takes",
      [0.5, 0.95, 0.99].map((q) => ({ expr: quantile(q, "makegood_attempt_seconds"), legend: `p${q * 100}` })),
      {
        says: "From the request to the answer.",
        act: "Near the timeout of the topic: the receiver is slow; lower its concurrency or mend it.",
        unit: "s",
      },
    ),
    lines(
      "Share that died, last hour",
      `${died} / (${grown("makegood_attempts_total", "1h", { where: { outcome: "delivered" } })} + ${died})`,
      {
        says: "Of all that ended. 99.9% are to be delivered; the line is the fast burn of that budget.",
        alert: "MakegoodDeliveryBurnFast",
        unit: "percentunit",
      },
    ),
    stacked("Waiting", level("makegood_messages", pending), {
      says: "Pending messages, by topic; held ones and those with a delay are among them.",
      act: "Growing: `makegood messages list --status pending` says of each why it waits.",
    }),
    lines("Oldest that waits", level("makegood_oldest_pending_seconds", { by: TOPIC }), {
      says: "Age of the oldest pending message, by topic.",
      alert: "MakegoodOldestPending",
      limit: 3_600,
      unit: "s",
    }),
    lanes("Breakers", level("makegood_breaker_state", { by: TOPIC }), {
      says: "A topic whose receiver fails is probed only.",
      alert: "MakegoodBreakerOpen",
      words: { "0": ["closed", "green"], "1": ["open, probed", "red"], "2": ["open", "red"] },
    }),
    lanes("Held topics", level("makegood_topic_held", { by: ["topic", "code"] }), {
      says: "Topics of which nothing is attempted, and why. Empty is well.",
      alert: "MakegoodWorkerGone",
      words: { "1": ["held", "orange"] },
    }),
    lines(
      "Seen again",
      [
        { expr: rate("makegood_duplicates_total"), legend: "enqueued again under its key" },
        { expr: rate("makegood_reclaimed_total"), legend: "taken over from an expired lease" },
        { expr: rate("makegood_claim_lost_total"), legend: "outcome not written, claim lost" },
        { expr: rate("makegood_unserved_total"), legend: "given back, not served here" },
      ],
      {
        says: "What a crash, a pause or a retrying producer leaves; no message is lost by it.",
        act: "Claims lost again and again: attempts outlast their lease, or processes stand still; `makegood doctor` compares both.",
        unit: "cps",
        width: 12,
      },
    ),
    lines("Direct tries", rate("makegood_direct_total", { by: ["outcome"] }), {
      says: "What deliver() tried before it stored anything.",
      act: "What did not succeed was stored and is delivered by a worker.",
      unit: "cps",
      width: 12,
    }),
  ],
};

export const deadLetters: Row = {
  title: "Dead letters",
  panels: [
    stat("Open", total("makegood_dead_letters", TOPIC), { says: "Nobody has decided on them.", alert: "M10DeadLettersHigh" }),
    stat("Oldest open", level("makegood_oldest_dead_letter_seconds"), {
      says: "Not known is well here: none is open.",
      alert: "MakegoodBillingDeadLetterOld",
      unit: "s",
    }),
    stacked("Open, by topic", level("makegood_dead_letters", { by: TOPIC }), {
      says: "They stay until a person or recovery decides.",
      act: "`makegood groups list --open`, largest first: approve its suggestion, or redrive it once the cause is mended.",
    }),
    bars("Died in an hour", grown("makegood_died_total", "1h", { by: TOPIC }), {
      says: "New dead letters, by topic.",
      alert: "MakegoodDeliveryBurnSlow",
      limit: undefined,
    }),
    lines("What people did", grown("makegood_interventions_total", "1h", { by: ["action"] }), {
      says: "Replays, resolutions, discards and others, in an hour.",
      act: "`makegood messages show <id>` has who did what and why.",
      width: 24,
    }),
  ],
};

export const recovery: Row = {
  title: "Recovery",
  panels: [
    stat("Open groups", level("makegood_groups", { where: { state: "open" } }), {
      says: "Kinds of failure with open messages.",
      act: "`makegood groups list --open`, largest first.",
    }),
    stat("New, last hour", level("makegood_groups_new"), { says: "Seen for the first time.", alert: "MakegoodNewFailureGroup" }),
    stat("Came back, last hour", level("makegood_groups_regressed"), {
      says: "Resolved before, failing again.",
      alert: "MakegoodRegression",
    }),
    stat("Approvals that wait", level("makegood_approvals_waiting"), {
      says: "Suggestions with an action that need a person.",
      alert: "MakegoodApprovalsWaiting",
    }),
    stat("Oldest undecided", level("makegood_oldest_undecided_seconds"), {
      says: "Not known is well here: none waits.",
      alert: "MakegoodOldestUndecided",
      unit: "s",
    }),
    stat("Redrives", total("makegood_redrives", ["status"]), {
      says: "Planned, running or paused.",
      act: "`makegood redrive list`; a paused one says why.",
    }),
    lines("Messages of redrives", rate("makegood_redrive_items_total", { by: ["state"] }), {
      says: "Sent again, healed, failed, skipped.",
      act: "Failures go on: `makegood redrive status <id>`; it pauses by itself where too many fail.",
      unit: "cps",
      width: 24,
    }),
  ],
};
