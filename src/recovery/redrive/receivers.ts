/**
 * The receivers that a redrive waits for: those whose breakers hold their messages, with the reason and the next probe. A copy goes to
 * the topic of its carrier, so that one's breaker counts.
 */
import type { Carrier, TopicRecord } from "../../message/topic.ts";
import { carrierTopicName } from "../carrier.ts";
import type { HeldReceiver, RedriveMode } from "./redrive.ts";

const isDown = ({ breaker }: TopicRecord): boolean => breaker.state !== "closed";

/** The topics of dead letters whose messages would not be delivered now. */
export function downTopics(topics: readonly TopicRecord[], mode: RedriveMode, carrier: Carrier | undefined): string[] {
  const down = new Set(topics.filter(isDown).map(({ name }) => name));
  if (mode !== "copy" || carrier === undefined) return [...down];
  return topics.filter(({ name }) => down.has(carrierTopicName(carrier, name))).map(({ name }) => name);
}

/** Of these topics, the topic's breaker or those of tenants that are held alone. */
export function heldReceivers(
  topics: readonly TopicRecord[],
  open: readonly string[],
  { mode, carrier }: { readonly mode: RedriveMode; readonly carrier: Carrier | undefined },
  nowMs: number,
): HeldReceiver[] {
  const names = new Set(mode === "copy" && carrier ? open.map((name) => carrierTopicName(carrier, name)) : open);
  return topics
    .filter(({ name }) => names.has(name))
    .flatMap(({ name: topic, breaker: { state, reason, probeInMs, tenants } }): HeldReceiver[] => {
      const nextProbeAt = new Date(nowMs + probeInMs);
      if (state !== "closed") return [{ topic, tenantId: null, reason, nextProbeAt }];
      return tenants.map((tenant) => ({ topic, ...tenant, nextProbeAt }));
    });
}
