/** The primary's topics as recovery beside it sees them, with the pause, the breaker and the sink's state of the primary. */
import type { TopicRecord } from "../../message/topic.ts";
import type { TopicStore } from "../../store/topics.ts";
import { isRecoveryTopic } from "../topics.ts";

/** Puts those of the primary that changed since they were put. A message here only asks the primary: order, limits and retries are kept there. */
export function createDeclare(primary: TopicStore, here: TopicStore): () => Promise<void> {
  const put = new Map<string, number>();
  const limits = { concurrency: null, tenantConcurrency: null, ordering: "none" } as const;
  return async () => {
    for (const { name, sink, schemaVersion, leaseMs, fallback, compensation, revision } of await primary.list()) {
      if (isRecoveryTopic(name) || put.get(name) === revision) continue;
      const { onUnknown: _, timeoutMs: __, ...asked } = sink;
      const kept = { name, schemaVersion, leaseMs, fallback, compensation };
      await here.put({ ...kept, sink: asked, retry: { policy: "exponential" }, ...limits }, "api");
      put.set(name, revision);
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
      const [record, there] = await Promise.all([here.get(name), primary.get(name)]);
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
