/**
 * The primary's topics as recovery beside it sees them: declared here so that messages can stand for theirs, with the pause, the breaker and
 * the sink's state of the primary. Its own topics are its own.
 */
import type { TopicDefinition, TopicRecord } from "../../message/topic.ts";
import type { TopicStore } from "../../store/topics.ts";
import { isRecoveryTopic } from "../topics.ts";

/** Here a message only asks the primary what became of it: order, limits and retries are kept there. */
function definitionHere({ name, sink, schemaVersion, leaseMs, fallback, compensation }: TopicRecord): TopicDefinition {
  const { onUnknown: _, timeoutMs: __, ...asked } = sink;
  const limits = { concurrency: null, tenantConcurrency: null, ordering: "none" } as const;
  return { name, sink: asked, retry: { policy: "exponential" }, schemaVersion, leaseMs, ...limits, fallback, compensation };
}

/** Puts those of the primary that changed since they were put. */
export function createDeclare(primary: TopicStore, here: TopicStore) {
  const put = new Map<string, number>();
  return async (topics: readonly string[] | "all"): Promise<void> => {
    if (topics !== "all" && topics.every((name) => put.has(name))) return;
    for (const record of await primary.list()) {
      if (isRecoveryTopic(record.name) || put.get(record.name) === record.revision) continue;
      await here.put(definitionHere(record), "api");
      put.set(record.name, record.revision);
    }
  };
}

/** For the engine alone: a worker here that minded the primary's breakers would probe and close them. */
export function topicsBeside(primary: TopicStore, here: TopicStore): TopicStore {
  const at = (name: string): TopicStore => (isRecoveryTopic(name) ? here : primary);
  const standing = (record: TopicRecord, there: TopicRecord | null | undefined): TopicRecord => {
    if (!there || isRecoveryTopic(record.name)) return record;
    const { paused, disabledReason, breaker } = there;
    return { ...record, paused, disabledReason, breaker };
  };
  return {
    ...here,
    async get(name: string) {
      const [record, there] = await Promise.all([here.get(name), isRecoveryTopic(name) ? null : primary.get(name)]);
      return record && standing(record, there);
    },
    async list() {
      const [records, theirs] = await Promise.all([here.list(), primary.list()]);
      const byName = new Map(theirs.map((record) => [record.name, record]));
      return records.map((record) => standing(record, byName.get(record.name)));
    },
    trip: (name, ...how) => at(name).trip(name, ...how),
    reset: (name, of) => at(name).reset(name, of),
  };
}
