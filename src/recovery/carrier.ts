/** Messages that carry an effect on under a new key, or as a copy to a topic of ours for a fallback or compensation (0019). */
import { createHash } from "node:crypto";
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import type { MessageView, NewMessage } from "../message/message.ts";
import type { Carrier, TopicDefinition, TopicName, TopicRecord } from "../message/topic.ts";
import { payloadHash } from "../message/validate.ts";
import type { TopicStore } from "../store/topics.ts";
import type { Redrive, RedriveMode } from "./redrive/redrive.ts";
import { planOf } from "./redrive/request.ts";
import { RECOVERY_NAMESPACE } from "./topics.ts";

const NAME_CHARS_MAX = 48;
/** I10: as many carrier topics are remembered as put. */
const REMEMBERED_MAX = 1_000;

const digestOf = (text: string, chars: number): string => createHash("sha256").update(text).digest("hex").slice(0, chars);

export function carrierTopicName(kind: Carrier, topic: string): TopicName {
  return `${RECOVERY_NAMESPACE}${kind}-${topic.replace("/", "-").slice(0, NAME_CHARS_MAX)}-${digestOf(topic, 8)}`;
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
export function createCarrierTopics(topics: Pick<TopicStore, "get" | "put">) {
  const put = new Map<string, number>();
  return async (topic: string, kind: Carrier): Promise<string> => {
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

/** A copy goes to the topic of its carrier, so that one's breaker counts. */
function receiverOf({ mode, plan }: Redrive): (topic: string) => string {
  const { carrier } = planOf(plan);
  return (topic) => (mode === "copy" && carrier ? carrierTopicName(carrier, topic) : topic);
}

/** The topics of dead letters whose messages would not be delivered now. */
export function downTopics(topics: readonly TopicRecord[], redrive: Redrive): string[] {
  const down = new Set<string>(topics.filter(({ breaker }) => breaker.state !== "closed").map(({ name }) => name));
  const receiver = receiverOf(redrive);
  return topics.map(({ name }) => name).filter((name) => down.has(receiver(name)));
}

/** Of these topics, the topic's breaker (no tenant) or those of tenants that are held alone. */
export function heldReceivers(topics: readonly TopicRecord[], open: readonly string[], redrive: Redrive, nowMs: number) {
  const names = new Set(open.map(receiverOf(redrive)));
  return topics
    .filter(({ name }) => names.has(name))
    .flatMap(({ name: topic, breaker: { state, reason, probeInMs, tenants } }) => {
      const held = state === "closed" ? tenants : [{ tenantId: null, reason }];
      return held.map((one) => ({ topic, ...one, nextProbeAt: new Date(nowMs + probeInMs) }));
    });
}

/** What a message was made from; null: it stands for itself. */
type Origin = (messageId: string) => Promise<object | null>;

/** Undefined where the mode needs none. */
export async function carrierFor(
  mode: RedriveMode,
  carrier: Carrier | undefined,
  message: MessageView,
  deps: { ids: () => string; carrierTopic: ReturnType<typeof createCarrierTopics>; origin: Origin },
): Promise<NewMessage | undefined> {
  if (mode === "new_key") return copyOf(message, deps.ids(), message.topic, await nextKey(message, deps.origin));
  if (mode !== "copy") return undefined;
  if (carrier === undefined) {
    throw new MakegoodError("invariant_violated", `a copy of message ${message.id} has no carrier: cancel the redrive`, {});
  }
  return copyOf(message, deps.ids(), await deps.carrierTopic(message.topic, carrier), carrierKey(carrier, message));
}

/** The message again under another identity; everything else, and every byte of its payload (I8), stays. */
export function copyOf(message: MessageView, id: string, topic: string, key: string | null, text = message.payload): NewMessage {
  const { tenantId, priority, orderingKey, traceparent, schemaVersion } = message;
  const body = { payload: text, payloadHash: key === null ? "" : payloadHash(text) };
  return { id, topic, key, ...body, delayMs: 0, tenantId, priority, orderingKey, traceparent, schemaVersion };
}

const SUFFIX = /~(\d{1,6})$/;

/** `<key or id>~<n>`, n from 1. A message that was made so itself is counted on, so that keys do not grow with each round. */
export async function nextKey(
  { id, key, generation }: Pick<MessageView, "id" | "key" | "generation">,
  origin: Origin,
): Promise<string> {
  const made = SUFFIX.exec(key ?? "");
  if (key !== null && made !== null && (await origin(id)) !== null) {
    return suffixed(key.slice(0, made.index), Number(made[1]) + generation + 1);
  }
  return suffixed(key ?? id, generation + 1);
}

/** A key at its limit makes room for the suffix; its digest keeps it apart from others that begin alike. */
function suffixed(key: string, n: number): string {
  const whole = `${key}~${n}`;
  if (Buffer.byteLength(whole) <= LIMITS.keyBytesMax) return whole;
  const tail = `~${digestOf(key, 16)}~${n}`;
  let head = key;
  while (Buffer.byteLength(head + tail) > LIMITS.keyBytesMax) head = [...head].slice(0, -1).join("");
  return head + tail;
}
