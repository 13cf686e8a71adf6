/** The topics of the engine's own: where evaluations are queued, where operators are notified. What dies in them is never acted on by itself. */
import { isMakegoodError } from "../message/errors.ts";
import { DEFAULTS } from "../message/limits.ts";
import type { TopicDefinition } from "../message/topic.ts";
import type { TopicStore } from "../store/topics.ts";
import type { RecoveryOptions } from "./settings.ts";

export const RECOVERY_NAMESPACE = "recovery/";
export const RECOVERY_TOPIC = "recovery/evaluate";
export const NOTIFY_TOPIC = "recovery/notify";

/** A dead evaluation would ask for its own evaluation. */
export const NOT_INGESTED: readonly string[] = [RECOVERY_TOPIC];

export function isRecoveryTopic(name: string): boolean {
  return name.startsWith(RECOVERY_NAMESPACE);
}

/** So often an evaluation is tried; then its candidate is marked `failed`. */
export const EVALUATION_ATTEMPTS_MAX = 5;

const base = { schemaVersion: null, leaseMs: DEFAULTS.leaseMs, tenantConcurrency: null, ordering: "none" } as const;

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
  retry: { policy: "recovery-outbox" },
  concurrency: null,
};

/** `evaluate`: over the definition of its topic. */
export function createOwnTopics(topics: Pick<TopicStore, "get" | "put">, evaluate: RecoveryOptions["evaluate"]) {
  let prepared: Promise<void> | undefined;

  async function declare(): Promise<void> {
    // Declared over the API, so that an operator may give them other sinks.
    if (evaluate) await topics.put({ ...EVALUATE_DEFINITION, ...evaluate }, "api");
    for (const definition of [EVALUATE_DEFINITION, NOTIFY_DEFINITION]) {
      if ((await topics.get(definition.name)) === null) await topics.put(definition, "api");
    }
  }

  /** Before the first write that queues a message of theirs; a call that failed is tried again by the next. */
  function prepare(): Promise<void> {
    prepared ??= declare().catch((error) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  }

  /** The same call; when an operator deleted the topic of evaluations meanwhile, it is declared again and the call made once more. */
  const again =
    <A extends unknown[], T>(call: (...given: A) => Promise<T>) =>
    async (...given: A): Promise<T> => {
      try {
        return await call(...given);
      } catch (error) {
        if (!isMakegoodError(error) || error.code !== "unknown_topic") throw error;
        prepared = undefined;
        await prepare();
        return call(...given);
      }
    };

  return { prepare, again };
}
