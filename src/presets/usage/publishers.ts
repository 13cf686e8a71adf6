/**
 * Who takes usage messages on: plugins under names, one of them chosen at run time, behind the topic `mini-chat/usage_snapshot`.
 * A plugin that is missing is the world's fault and not the message's: it waits and spends its attempts like any failure.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { TopicName } from "../../message/topic.ts";
import type { DeliverContext, Delivery } from "../../sink/sink.ts";
import { type Topic, type TopicHandler, type TopicOptions, topic } from "../../topic/topic.ts";
import { usageKey } from "./settle-turn.ts";
import { SNAPSHOT_VERSION, snapshotSchema, type UsageSnapshot } from "./snapshot.ts";

export const USAGE_TOPIC = "mini-chat/usage_snapshot";

export interface PublishContext extends Pick<DeliverContext, "signal" | "timeoutMs"> {
  /** `{tenant_id}/{turn_id}/{request_id}`: the same for every attempt and replay. A publisher acts once for each. */
  readonly idempotencyKey: string;
  readonly attempt: number;
}

/** Returning is delivered, throwing is a retry; an outcome (`retry()`, `reject()`, DUPLICATE) that is returned or thrown is taken at its word. */
export interface UsagePublisher {
  publishUsage(snapshot: UsageSnapshot, context: PublishContext): unknown;
}

export interface UsagePublishers {
  /** Returns how to take it away again. */
  register(name: string, publisher: UsagePublisher): () => void;
  /** From the next delivery on; null: none. */
  choose(name: string | null): void;
  readonly chosen: string | null;
  current(): UsagePublisher | undefined;
}

export function createUsagePublishers(initial: Readonly<Record<string, UsagePublisher>> = {}, chosen?: string): UsagePublishers {
  const byName = new Map(Object.entries(initial));
  let name = chosen ?? [...byName.keys()][0] ?? null;
  return {
    register(as, publisher) {
      if (typeof publisher?.publishUsage !== "function") {
        throw new MakegoodError("invalid_config", `publisher ${JSON.stringify(as)} has no publishUsage(snapshot, context)`);
      }
      byName.set(as, publisher);
      return () => {
        if (byName.get(as) === publisher) byName.delete(as);
      };
    },
    choose(next) {
      name = next;
    },
    get chosen() {
      return name;
    },
    current: () => (name === null ? undefined : byName.get(name)),
  };
}

export interface UsageTopicOptions
  extends Pick<TopicOptions, "leaseMs" | "timeoutMs" | "concurrency" | "tenantConcurrency" | "retry"> {
  /** Absent: this process only finalises; another one publishes. */
  readonly publishers?: UsagePublishers | undefined;
  /** Counters besides input and output tokens that may leave. */
  readonly counters?: readonly string[] | undefined;
  readonly name?: TopicName | undefined;
}

const COUNTER = /^[a-z][a-z0-9_]{0,49}$/;

export type UsageTopic = Topic<UsageSnapshot> & { readonly counters: readonly string[] };

export function usageTopic({ publishers, counters = [], name = USAGE_TOPIC, ...options }: UsageTopicOptions = {}): UsageTopic {
  const wrong = counters.filter((counter) => !COUNTER.test(counter));
  if (wrong.length > 0) {
    const what = `counters ${JSON.stringify(wrong)} are refused: lower-case letters, digits and _ only`;
    throw new MakegoodError("invalid_config", what);
  }
  const sink: TopicHandler<UsageSnapshot> | undefined =
    publishers && ((snapshot, delivery, context) => publish(publishers, snapshot, delivery, context));
  const schema = snapshotSchema(counters);
  const made = topic(name, { schema, schemaVersion: SNAPSHOT_VERSION, retry: "usage", ...options, sink });
  return Object.freeze({ ...made, counters: [...counters] });
}

function publish(publishers: UsagePublishers, snapshot: UsageSnapshot, delivery: Delivery, context: DeliverContext): unknown {
  const { tenant_id: tenantId, turn_id: turnId, request_id: requestId } = snapshot;
  const idempotencyKey = usageKey({ tenantId, turnId, requestId });
  // DO-15: without its own key the receiver could not tell a repeat from a second charge.
  if (delivery.key !== idempotencyKey) {
    const error = `the message's key is not ${idempotencyKey}`;
    return { kind: "reject", code: "usage_key_mismatch", error } satisfies Outcome;
  }
  const publisher = publishers.current();
  if (!publisher) {
    const error = `publisher ${JSON.stringify(publishers.chosen)} is not registered in this process: register it, or choose another`;
    return { kind: "retry", code: "publisher_missing", error, alert: true } satisfies Outcome;
  }
  return publisher.publishUsage(snapshot, {
    idempotencyKey,
    attempt: delivery.attempt,
    timeoutMs: context.timeoutMs,
    get signal() {
      return context.signal;
    },
  });
}
