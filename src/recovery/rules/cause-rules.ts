/**
 * What helps against a cause: rules above the ten of the seeds. They ask for a cause that more than a bare code speaks for, so a code
 * alone is answered by the ten. A kind of a cause whose remedy differs stands above its cause; a score is our first guess.
 */
import type { Rule, Rules } from "./rule.ts";

/** More than a code that the ten know by themselves. */
const CERTAINTY_MIN = 0.5;

function rule(priority: number, name: string, action: string, score: number, ...is: string[]): Rule {
  const id = `cause_${(is[0] ?? "").replace(".", "_")}`;
  return { id, version: 1, name, priority, enabled: true, condition: { cause: { is, certainty: CERTAINTY_MIN } }, action, score };
}

const KIND = 120;
const CAUSE = 110;

export const CAUSE_RULES: Rules = [
  rule(
    KIND,
    "It will be back in a moment: retry with backoff",
    "retry_exponential",
    0.75,
    "outage.passing",
    "resource_exhausted.passing",
  ),
  rule(KIND, "What was paid for is used up: tell the operators", "notify_ops", 0.65, "overload_or_quota.spent"),
  rule(KIND, "Only the user can sign in again: a person must look", "manual_intervention", 0.55, "auth_or_permission.user"),
  rule(KIND, "It is gone or not wanted: skip it", "skip_task", 0.65, "missing_target.gone", "business_refusal.unwanted"),
  rule(KIND, "The model is not there: use the fallback", "fallback_model", 0.65, "missing_target.model"),
  rule(
    KIND,
    "It was not set up: tell the operators",
    "notify_ops",
    0.6,
    "missing_target.set_up",
    "bug_in_receiver.release",
    "bug_in_sender.route",
    "business_refusal.account",
  ),
  rule(KIND, "It was done before: skip it", "skip_task", 0.75, "conflict_or_duplicate.done"),
  rule(KIND, "A part was applied: undo it", "rollback_state", 0.5, "conflict_or_duplicate.partial"),
  rule(
    KIND,
    "The receiver's process is exhausted: open its breaker and hold",
    "circuit_breaker",
    0.6,
    "resource_exhausted.process",
  ),
  rule(CAUSE, "The receiver is down: open its breaker and hold", "circuit_breaker", 0.75, "outage"),
  rule(CAUSE, "Too much at once: retry with backoff", "retry_exponential", 0.8, "overload_or_quota"),
  rule(CAUSE, "The way was broken: retry with backoff", "retry_exponential", 0.75, "network"),
  rule(CAUSE, "No answer in time: retry with backoff", "retry_exponential", 0.85, "timeout"),
  rule(CAUSE, "Credentials or rights: tell the operators", "notify_ops", 0.6, "auth_or_permission"),
  rule(CAUSE, "The message does not fit: a person must look", "manual_intervention", 0.6, "bad_payload"),
  rule(CAUSE, "Its target is not known: a person must look", "manual_intervention", 0.5, "missing_target"),
  rule(CAUSE, "It collided: retry with backoff", "retry_exponential", 0.7, "conflict_or_duplicate"),
  rule(CAUSE, "A mistake in the receiver: a person must look", "manual_intervention", 0.6, "bug_in_receiver"),
  rule(CAUSE, "A mistake of ours: a person must look", "manual_intervention", 0.6, "bug_in_sender"),
  rule(CAUSE, "A setting or a certificate: tell the operators", "notify_ops", 0.65, "config_or_tls"),
  rule(CAUSE, "It runs full: tell the operators", "notify_ops", 0.6, "resource_exhausted"),
  rule(CAUSE, "It is refused for a reason: a person must look", "manual_intervention", 0.6, "business_refusal"),
  rule(CAUSE, "The database was busy: retry with backoff", "retry_exponential", 0.85, "transient_db"),
];
