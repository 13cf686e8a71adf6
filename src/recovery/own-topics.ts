/**
 * The engine's own topics: declared before the first write that queues a message of theirs, and once more when an operator
 * deleted one meanwhile. Without that every ingest would be refused, because its evaluation could not be queued.
 */
import { isMakegoodError } from "../message/errors.ts";
import type { RecoveryStore } from "./records-types.ts";
import type { TopicStore } from "../store/topics.ts";
import type { RecoveryOptions } from "./settings.ts";
import { EVALUATE_DEFINITION, NOTIFY_DEFINITION } from "./topics.ts";

export interface OwnTopics {
  /** Done once; a call that failed is tried again by the next. */
  prepare(): Promise<void>;
  /** The same store; a write that finds the topic of evaluations gone declares it again and is tried once more. */
  withTopics(recovery: RecoveryStore): RecoveryStore;
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

  async function again<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (!isMakegoodError(error) || error.code !== "unknown_topic") throw error;
      prepared = undefined;
      await prepare();
      return ask();
    }
  }

  return {
    prepare,
    withTopics: (recovery) =>
      Object.assign(Object.create(recovery) as RecoveryStore, {
        ingest: (...given: Parameters<RecoveryStore["ingest"]>) => again(() => recovery.ingest(...given)),
        reopen: (...given: Parameters<RecoveryStore["reopen"]>) => again(() => recovery.reopen(...given)),
      }),
  };
}

async function declareTopics(topics: Pick<TopicStore, "get" | "put">, evaluate: RecoveryOptions["evaluate"]): Promise<void> {
  // Declared over the API, so that an operator may give them other sinks.
  if (evaluate) await topics.put({ ...EVALUATE_DEFINITION, ...evaluate }, "api");
  for (const definition of [EVALUATE_DEFINITION, NOTIFY_DEFINITION]) {
    if ((await topics.get(definition.name)) === null) await topics.put(definition, "api");
  }
}
