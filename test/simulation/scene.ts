/**
 * The topics of a history, what is sent to them as a producer says it, and how long a storm is felt.
 */

import type { TopicDefinition } from "../../src/message/topic.ts";
import type { MessageFields } from "../../src/message/validate.ts";
import { type AnyTopic, topic } from "../../src/topic/topic.ts";
import { type Sent, TOPICS } from "./actions.ts";

/**
 * How long after a storm anybody may still be busy with it: the longest rest of a process that could not deliver a topic (30 s), or a lease
 * (8 s), a takeover that nobody heard of (10 s) and the rest of a store that failed (5 s).
 */
export const SETTLING_MS = 35_000;

/** The longest wait is reached before the last attempt. */
const RETRY = { policy: "exponential", attemptsMax: 4, baseMs: 300, maxMs: 1_000 } as const;
const USUAL = { retry: RETRY, leaseMs: 2_000, timeoutMs: 1_500 } as const;

export function definitions(): TopicDefinition[] {
  return [
    topic(TOPICS.plain, { ...USUAL, ordering: "none", retry: { ...RETRY, attemptsMax: 6, maxMs: 20_000 } }),
    topic(TOPICS.keyed, { ...USUAL, ordering: "key" }),
    topic(TOPICS.strict, { ...USUAL, ordering: "strict" }),
    topic(TOPICS.limited, { ...USUAL, ordering: "none", ratePerSecond: 20, tenantRatePerSecond: 10, concurrencyTotal: 6 }),
    topic(TOPICS.holds, { ...USUAL, ordering: "none", onUnknown: "hold" }),
    handlerTopic(() => undefined),
  ].map(({ definition }) => definition);
}

export function handlerTopic(sink: NonNullable<Parameters<typeof topic>[1]>["sink"] & object): AnyTopic {
  // Longer than its lease, which has to be extended under it.
  return topic(TOPICS.handler, { ...USUAL, ordering: "key", timeoutMs: 4_000, sink });
}

export function fieldsOf(sent: Sent): readonly [object, MessageFields] {
  const { n, keyed, keyOf = n, tenant, orderingKey, delayMs, priority } = sent;
  return [
    { n, do: sent.do },
    { key: keyed ? `k${keyOf}` : null, tenantId: tenant, orderingKey, delayMs, priority },
  ];
}

/** Other bytes than JSON.stringify would make, which have to stay as they are. */
export const oddly = (payload: object): string =>
  ` ${JSON.stringify(payload).replace(",", ' , "big":12345678901234567890,"\\u0041":1.0,')}\n`;
