/**
 * What the cases are made of: topics, messages, settlements, and a way to shuffle.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { isMakegoodError } from "../../message/errors.ts";
import type { MessageView, NewMessage, Ordering, Suspicion } from "../../message/message.ts";
import type { Settlement } from "../../message/settlement.ts";
import type { TopicDefinition } from "../../message/topic.ts";
import { systemRandom } from "../../platform/random.ts";
import type { Store } from "../../store/store.ts";

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const DAY = 24 * 60 * MINUTE;

export const PLAIN = "test/plain";
export const OTHER = "other/plain";
export const KEYED = "test/keyed";
export const STRICT = "test/strict";

export function definition(name: string, ordering: Ordering = "none"): TopicDefinition {
  return {
    name,
    sink: { kind: "function" },
    retry: { policy: "exponential", attemptsMax: 3 },
    schemaVersion: null,
    leaseMs: 30_000,
    concurrency: null,
    tenantConcurrency: null,
    ordering,
  };
}

export const TOPICS: readonly TopicDefinition[] = [
  definition(PLAIN),
  definition(OTHER),
  definition(KEYED, "key"),
  definition(STRICT, "strict"),
];

export function hashOf(payload: string): string {
  return createHash("sha256").update(payload, "utf8").digest("hex").slice(0, 32);
}

export function newMessage(id: string, fields: Partial<NewMessage> = {}): NewMessage {
  const payload = fields.payload ?? `{"id":"${id}"}`;
  return {
    id,
    topic: PLAIN,
    tenantId: null,
    key: null,
    payload,
    payloadHash: hashOf(payload),
    delayMs: 0,
    priority: 0,
    orderingKey: null,
    traceparent: null,
    schemaVersion: null,
    ...fields,
  };
}

export const DELIVERED: Settlement = { kind: "delivered", outcome: "delivered" };
export const RELEASE: Settlement = { kind: "release" };

export function retry(delayMs = 0, counted = true, suspicion: Suspicion = 0, retried = false): Settlement {
  return { kind: "retry", delayMs, counted, suspicion, retried, outcome: "retry", code: "http_503", error: "unavailable" };
}

export function dead(blocksOrder = false): Settlement {
  return { kind: "dead", blocksOrder, outcome: "reject", code: "http_422", error: "refused" };
}

export function hold(counted = true): Settlement {
  return { kind: "hold", reason: "outcome_unknown", counted, outcome: "unknown", code: "timeout", error: "no answer" };
}

/** The message, which must be there. */
export async function seen(store: Store, id: string): Promise<MessageView> {
  const view = await store.get(id);
  assert.ok(view, `message ${id} should be there`);
  return view;
}

/** How many messages there are, of one status or of all. */
export async function countOf(store: Store, status?: MessageView["status"]): Promise<number> {
  const counts = await store.counts({ delivered: true });
  return counts.reduce((sum, each) => sum + (status === undefined || each.status === status ? each.count : 0), 0);
}

/** The call must be refused with this code of the one error class. */
export async function refused(code: string, call: () => Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(isMakegoodError(error), `expected MakegoodError ${code}, got ${String(error)}`);
    assert.equal(error.code, code);
    return true;
  });
}

/** For comparing what has no order. */
export function sorted(texts: readonly string[]): string[] {
  return [...texts].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

export const idsOf = (messages: readonly { readonly id: string }[]): string[] => messages.map(({ id }) => id);

export function shuffled<T>(items: readonly T[]): T[] {
  const list = [...items];
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(systemRandom.next() * (i + 1));
    [list[i], list[j]] = [list[j] as T, list[i] as T];
  }
  return list;
}

/** True with this probability. */
export const chance = (probability: number): boolean => systemRandom.next() < probability;
