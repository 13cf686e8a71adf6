/**
 * What helps against a cause: rules above the ten of the seeds. They ask for a cause that more than a bare code speaks for, so a code
 * alone is answered by the ten. A kind of a cause whose remedy differs stands above its cause; a score is our first guess.
 */
import type { Rule, Rules } from "./rule.ts";

/** More than a code that the ten know by themselves. */
const CERTAINTY_MIN = 0.5;

function rule(id: string, priority: number, name: string, action: string, score: number, ...is: string[]): Rule {
  const condition = { cause: { is, certainty: CERTAINTY_MIN } };
  return { id: `cause_${id}`, version: 1, name, priority, enabled: true, condition, action, score };
}

/** Above the ten, and below 100, where people put what comes before everything. */
const KIND = 92;
const CAUSE = 91;
const [RETRY, NOTIFY, PERSON, SKIP] = ["retry_exponential", "notify_ops", "manual_intervention", "skip_task"] as const;
const SET_UP = ["missing_target.set_up", "bug_in_receiver.release", "bug_in_sender.route"];
const OF_THE_MESSAGE = ["bad_payload", "missing_target", "bug_in_receiver", "bug_in_sender", "business_refusal"];

export const CAUSE_RULES: Rules = [
  rule(
    "done",
    KIND,
    "Done before, gone or not wanted: skip it",
    SKIP,
    0.7,
    "conflict_or_duplicate.done",
    "missing_target.gone",
    "business_refusal.unwanted",
  ),
  rule(
    "passing",
    KIND,
    "It will be back in a moment: retry with backoff",
    RETRY,
    0.75,
    "outage.passing",
    "resource_exhausted.passing",
  ),
  rule("model", KIND, "The model is not there: use the fallback", "fallback_model", 0.65, "missing_target.model"),
  rule(
    "set_up",
    KIND,
    "Not set up, not released or not paid: tell the operators",
    NOTIFY,
    0.6,
    ...SET_UP,
    "overload_or_quota.spent",
    "business_refusal.account",
  ),
  rule(
    "process",
    KIND,
    "The receiver's process is exhausted: open its breaker and hold",
    "circuit_breaker",
    0.6,
    "resource_exhausted.process",
  ),
  rule("user", KIND, "Only the user can sign in again: a person must look", PERSON, 0.55, "auth_or_permission.user"),
  rule("partial", KIND, "A part was applied: undo it", "rollback_state", 0.5, "conflict_or_duplicate.partial"),
  rule("late", CAUSE, "No answer in time, or a busy database: retry with backoff", RETRY, 0.85, "timeout", "transient_db"),
  rule("overload", CAUSE, "Too much at once: retry with backoff", RETRY, 0.8, "overload_or_quota"),
  rule("down", CAUSE, "The receiver is down: open its breaker and hold", "circuit_breaker", 0.75, "outage"),
  rule("collision", CAUSE, "The way broke, or two collided: retry with backoff", RETRY, 0.75, "network", "conflict_or_duplicate"),
  rule(
    "operators",
    CAUSE,
    "Only operators can put it right: tell them",
    NOTIFY,
    0.6,
    "auth_or_permission",
    "config_or_tls",
    "resource_exhausted",
  ),
  rule("person", CAUSE, "The message or the program is wrong: a person must look", PERSON, 0.6, ...OF_THE_MESSAGE),
];
