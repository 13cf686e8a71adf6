/**
 * The topics behind a topic's `fallback` and `compensation` where those are functions or sinks of this process: they are declared with it,
 * so that what recovery sends there is delivered here. Those that are configurations are put by the engine when they are needed.
 */
import { CARRIERS, type Carrier } from "../message/topic.ts";
import { carrierDefinition, carrierTopicName } from "../recovery/carrier.ts";
import type { AnyTopic } from "../topic/topic.ts";

export function withCarriers(topics: readonly AnyTopic[]): AnyTopic[] {
  return topics.flatMap((topic) => [topic, ...CARRIERS.flatMap((kind) => carrierTopic(topic, kind))]);
}

function carrierTopic({ definition: origin, schema, carriers }: AnyTopic, kind: Carrier): AnyTopic[] {
  const own = carriers?.[kind];
  const definition = own?.handler || own?.sink ? carrierDefinition(kind, origin) : null;
  return definition && own ? [{ name: carrierTopicName(kind, origin.name), definition, schema, ...own, sendsOnly: false }] : [];
}
