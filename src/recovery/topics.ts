/**
 * The topics of the engine's own: where evaluations are queued, where operators are notified. What dies in them is never acted on
 * by itself (no recovery of a recovery), and a dead evaluation is not ingested at all, or it would ask for its own evaluation.
 */
import { DEFAULTS } from "../message/limits.ts";
import type { TopicDefinition } from "../message/topic.ts";

export const RECOVERY_NAMESPACE = "recovery/";
export const RECOVERY_TOPIC = "recovery/evaluate";
export const NOTIFY_TOPIC = "recovery/notify";

/** Topics whose dead letters are no failures to recover from. */
export const NOT_INGESTED: readonly string[] = [RECOVERY_TOPIC];

export function isRecoveryTopic(name: string): boolean {
  return name.startsWith(RECOVERY_NAMESPACE);
}

/** So often an evaluation is tried; then its candidate is marked `failed`. */
export const EVALUATION_ATTEMPTS_MAX = 5;

const base = {
  schemaVersion: null,
  leaseMs: DEFAULTS.leaseMs,
  tenantConcurrency: null,
  ordering: "none",
} as const;

/** The sink of `recovery/evaluate` is a function of this process: what the engine's `evaluateMessage` does. */
export const EVALUATE_DEFINITION: TopicDefinition = {
  ...base,
  name: RECOVERY_TOPIC,
  sink: { kind: "function" },
  retry: { policy: "exponential", attemptsMax: EVALUATION_ATTEMPTS_MAX },
  concurrency: 4,
};

/** Without a URL it writes to the log; an operator's definition over the API takes its place. */
export const NOTIFY_DEFINITION: TopicDefinition = {
  ...base,
  name: NOTIFY_TOPIC,
  sink: { kind: "notify" },
  retry: { policy: "exponential" },
  concurrency: null,
};
