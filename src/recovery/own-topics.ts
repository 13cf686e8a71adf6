/**
 * The engine's own topics: declared before the first write that queues a message of theirs, and once more when an operator
 * deleted one meanwhile. Without that every ingest would be refused, because its evaluation could not be queued.
 */
import { isMakegoodError } from "../message/errors.ts";
import type { TopicStore } from "../store/topics.ts";
import type { RecoveryOptions } from "./settings.ts";
import { EVALUATE_DEFINITION, NOTIFY_DEFINITION } from "./topics.ts";

export interface OwnTopics {
  /** Done once; a call that failed is tried again by the next. */
  prepare(): Promise<void>;
  /** The same call; when it finds the topic of evaluations gone, the topic is declared again and the call made once more. */
  again<A extends unknown[], T>(call: (...given: A) => Promise<T>): (...given: A) => Promise<T>;
}

export function createOwnTopics(topics: Pick<TopicStore, "get" | "put">, evaluate: RecoveryOptions["evaluate"]): OwnTopics {
  let prepared: Promise<void> | undefined;

  function prepare(): Promise<void> {
    prepared ??= declareTopics(topics, evaluate).catch((error) => {
      prepared = undefined;
      throw error;
    });
    return prepared;
  }

  return {
    prepare,
    again:
      (call) =>
      async (...given) => {
        try {
          return await call(...given);
        } catch (error) {
          if (!isMakegoodError(error) || error.code !== "unknown_topic") throw error;
          prepared = undefined;
          await prepare();
          return call(...given);
        }
      },
  };
}

async function declareTopics(topics: Pick<TopicStore, "get" | "put">, evaluate: RecoveryOptions["evaluate"]): Promise<void> {
  // Declared over the API, so that an operator may give them other sinks.
  if (evaluate) await topics.put({ ...EVALUATE_DEFINITION, ...evaluate }, "api");
  for (const definition of [EVALUATE_DEFINITION, NOTIFY_DEFINITION]) {
    if ((await topics.get(definition.name)) === null) await topics.put(definition, "api");
  }
}
