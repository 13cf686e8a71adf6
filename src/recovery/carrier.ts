/**
 * Copies that carry an effect another way: to a topic's `fallback` or `compensation` sink. Each has a topic of ours, derived from the
 * origin and put right before it is needed, so the kernel needs no second route per message (decision 0019).
 */
import { createHash } from "node:crypto";
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import type { MessageView } from "../message/message.ts";
import type { Carrier, TopicDefinition, TopicName } from "../message/topic.ts";
import type { TopicStore } from "../store/topics.ts";
import { RECOVERY_NAMESPACE } from "./topics.ts";

const NAME_CHARS_MAX = 48;
/** I10: as many carrier topics are remembered as put. */
const REMEMBERED_MAX = 1_000;

export function carrierTopicName(kind: Carrier, topic: string): TopicName {
  const readable = topic.replace("/", "-").slice(0, NAME_CHARS_MAX);
  const digest = createHash("sha256").update(topic).digest("hex").slice(0, 8);
  return `${RECOVERY_NAMESPACE}${kind}-${readable}-${digest}`;
}

/** The effect's identity on its other way: a fallback has the same effect (I7), a compensation has another one. */
export function carrierKey(kind: Carrier, { key, id }: Pick<MessageView, "key" | "id">): string {
  if (kind === "fallback") return key ?? id;
  const own = `compensation:${key ?? id}`;
  return Buffer.byteLength(own) <= LIMITS.keyBytesMax ? own : `compensation:${id}`;
}

/** Null when the origin has no such sink. */
export function carrierDefinition(kind: Carrier, origin: TopicDefinition): TopicDefinition | null {
  const sink = origin[kind];
  if (sink === undefined) return null;
  const { retry, schemaVersion, leaseMs, concurrency, tenantConcurrency, ordering } = origin;
  const name = carrierTopicName(kind, origin.name);
  return { name, sink, retry, schemaVersion, leaseMs, concurrency, tenantConcurrency, ordering };
}

/** Puts the carrier topic of a topic as it is defined now, and says its name. */
export type CarrierTopic = (topic: string, kind: Carrier) => Promise<string>;

export function createCarrierTopics(topics: Pick<TopicStore, "get" | "put">): CarrierTopic {
  const put = new Map<string, number>();
  return async (topic, kind) => {
    const origin = await topics.get(topic);
    const definition = origin && carrierDefinition(kind, origin);
    if (!origin || !definition) {
      throw new MakegoodError("action_refused", `Topic ${topic} has no ${kind} sink: give it one, then try again.`, { topic });
    }
    const { name } = definition;
    if (put.get(name) === origin.revision) return name;
    // Declared in code it is read-only here, and just as good.
    await topics.put(definition, "api");
    if (put.size >= REMEMBERED_MAX) put.clear();
    put.set(name, origin.revision);
    return name;
  };
}
