/**
 * The rules that are shipped: the ten of the seeds, and above them those of causes. Ids and priorities are those of the seeds where the seeds give them; a score
 * is our first guess at how often the action heals, and outcomes correct it.
 */
import { CAUSE_RULES } from "./cause-rules.ts";
import { type Condition, FROM_HISTORY, type Rule, type Rules } from "./rule.ts";

function rule(id: string, name: string, priority: number, condition: Condition, action: string, score: number): Rule {
  return { id, version: 1, name, priority, enabled: true, condition, action, score };
}

export const SEED_RULES: Rules = [
  rule("timeout_retry", "A timeout passes: retry with backoff", 90, { code: { is: ["TIMEOUT"] } }, "retry_exponential", 0.85),
  rule(
    "rate_limit_backoff",
    "Rate limited: retry with backoff",
    85,
    { code: { is: ["RATE_LIMIT", "429"] } },
    "retry_exponential",
    0.8,
  ),
  rule(
    "server_error_fallback",
    "The receiver fails: open its breaker and hold",
    80,
    { code: { class: ["HTTP_5XX"] } },
    "circuit_breaker",
    0.75,
  ),
  rule(
    "connection_retry",
    "The receiver cannot be reached: retry with backoff",
    78,
    { code: { class: ["CONNECTION"] } },
    "retry_exponential",
    0.75,
  ),
  rule("budget_fallback", "The budget is spent: use the fallback", 75, { code: { class: ["BUDGET"] } }, "fallback_model", 0.7),
  rule("auth_notify", "Credentials are refused: tell the operators", 70, { code: { class: ["AUTH"] } }, "notify_ops", 0.6),
  rule(
    "historical_success",
    "What worked for this failure before",
    60,
    { history: { minOccurrences: 3, minSuccess: 0.7 } },
    FROM_HISTORY,
    0.7,
  ),
  // Above the next one: what happened ten times also happened five times.
  rule("manual_review_high", "It happens very often: a person must look", 45, { occurrences: 10 }, "manual_intervention", 0.5),
  rule("escalate_repeated", "It happens again and again: tell the operators", 40, { occurrences: 5 }, "notify_ops", 0.5),
  rule(
    "unknown_manual",
    "An unknown failure: a person must look",
    10,
    { code: { class: ["UNKNOWN"] } },
    "manual_intervention",
    0.35,
  ),
];

export const DEFAULT_RULES: Rules = [...CAUSE_RULES, ...SEED_RULES];
