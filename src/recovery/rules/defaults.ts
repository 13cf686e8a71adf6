/**
 * The rules that are shipped: the ten of the seeds, and above them what helps against a cause. Ids and priorities are those of the seeds
 * where the seeds give them; a score is our first guess at how often the action heals, and outcomes correct it.
 */
import { type Condition, FROM_HISTORY, type Rule, type Rules } from "./rule.ts";

const [RETRY, NOTIFY, PERSON, SKIP] = ["retry_exponential", "notify_ops", "manual_intervention", "skip_task"];
const [BREAKER, FALLBACK, ROLLBACK] = ["circuit_breaker", "fallback_model", "rollback_state"];

function rule(id: string, name: string, priority: number, condition: Condition, action: string, score: number): Rule {
  return { id, version: 1, name, priority, enabled: true, condition, action, score };
}

/** A code alone says less than this, so that it is answered by the ten. */
const CERTAINTY_MIN = 0.5;

/** A kind of a cause whose remedy differs stands above its cause; both above the ten, and below 100, where people put what comes first. */
function cause(id: string, name: string, action: string, score: number, causes: string): Rule {
  const condition = { cause: { is: causes.split(" "), certainty: CERTAINTY_MIN } };
  return rule(`cause_${id}`, name, causes.includes(".") ? 92 : 91, condition, action, score);
}

const ofClass = (name: string): Condition => ({ code: { class: [name] } });

const DONE = "conflict_or_duplicate.done missing_target.gone business_refusal.unwanted";
const SET_UP =
  "missing_target.set_up bug_in_receiver.release bug_in_sender.route overload_or_quota.spent business_refusal.account";
const OPERATED = "auth_or_permission config_or_tls resource_exhausted";
const OF_THE_MESSAGE = "bad_payload missing_target bug_in_receiver bug_in_sender business_refusal";
const PASSING = "outage.passing resource_exhausted.passing";

const CAUSE_RULES: Rules = [
  cause("done", "Done before, gone or not wanted: skip it", SKIP, 0.7, DONE),
  cause("passing", "It will be back in a moment: retry with backoff", RETRY, 0.75, PASSING),
  cause("model", "The model is not there: use the fallback", FALLBACK, 0.65, "missing_target.model"),
  cause("set_up", "Not set up, not released or not paid: tell the operators", NOTIFY, 0.6, SET_UP),
  cause("process", "The receiver's process is exhausted: open its breaker and hold", BREAKER, 0.6, "resource_exhausted.process"),
  cause("user", "Only the user can sign in again: a person must look", PERSON, 0.55, "auth_or_permission.user"),
  cause("partial", "A part was applied: undo it", ROLLBACK, 0.5, "conflict_or_duplicate.partial"),
  cause("late", "No answer in time, or a busy database: retry with backoff", RETRY, 0.85, "timeout transient_db"),
  cause("overload", "Too much at once: retry with backoff", RETRY, 0.8, "overload_or_quota"),
  cause("down", "The receiver is down: open its breaker and hold", BREAKER, 0.75, "outage"),
  cause("collision", "The way broke, or two collided: retry with backoff", RETRY, 0.75, "network conflict_or_duplicate"),
  cause("operators", "Only operators can put it right: tell them", NOTIFY, 0.6, OPERATED),
  cause("person", "The message or the program is wrong: a person must look", PERSON, 0.6, OF_THE_MESSAGE),
];

const HISTORY = { minOccurrences: 3, minSuccess: 0.7 };

export const SEED_RULES: Rules = [
  rule("timeout_retry", "A timeout passes: retry with backoff", 90, { code: { is: ["TIMEOUT"] } }, RETRY, 0.85),
  rule("rate_limit_backoff", "Rate limited: retry with backoff", 85, { code: { is: ["RATE_LIMIT", "429"] } }, RETRY, 0.8),
  rule("server_error_fallback", "The receiver fails: open its breaker and hold", 80, ofClass("HTTP_5XX"), BREAKER, 0.75),
  rule("connection_retry", "The receiver cannot be reached: retry with backoff", 78, ofClass("CONNECTION"), RETRY, 0.75),
  rule("budget_fallback", "The budget is spent: use the fallback", 75, ofClass("BUDGET"), FALLBACK, 0.7),
  rule("auth_notify", "Credentials are refused: tell the operators", 70, ofClass("AUTH"), NOTIFY, 0.6),
  rule("historical_success", "What worked for this failure before", 60, { history: HISTORY }, FROM_HISTORY, 0.7),
  // Above the next one: what happened ten times also happened five times.
  rule("manual_review_high", "It happens very often: a person must look", 45, { occurrences: 10 }, PERSON, 0.5),
  rule("escalate_repeated", "It happens again and again: tell the operators", 40, { occurrences: 5 }, NOTIFY, 0.5),
  rule("unknown_manual", "An unknown failure: a person must look", 10, ofClass("UNKNOWN"), PERSON, 0.35),
];

export const DEFAULT_RULES: Rules = [...CAUSE_RULES, ...SEED_RULES];
