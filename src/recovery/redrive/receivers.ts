/**
 * The receivers that a redrive waits for: those whose breakers hold their messages, with the reason and the next probe.
 */
import type { TopicRecord } from "../../message/topic.ts";
import { carrierTopicName } from "../carrier.ts";
import type { Redrive } from "./redrive.ts";
import { planOf } from "./request.ts";

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
