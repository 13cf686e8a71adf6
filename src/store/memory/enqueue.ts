/**
 * Accepting messages: first check the whole call against ids and keys, then write all of it or none of it. A repeated id
 * is the retry of an enqueue whose outcome was unknown and stays one message.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import type { EnqueueOptions } from "../store.ts";
import { laneOf, park } from "./lanes.ts";
import { hint, nowMs, type State, type Stored } from "./state.ts";

export function enqueue(state: State, messages: readonly NewMessage[], options: EnqueueOptions = {}): Accepted[] {
  if (options.tx !== undefined) {
    const text =
      "The memory store has no transactions to take part in: enqueue without `tx`, or test with makegood/testing's createTestStore.";
    throw new MakegoodError("not_a_transaction", text);
  }
  checkTopics(state, messages);
  return accept(state, messages, options);
}

export function checkTopics(state: State, messages: readonly NewMessage[]): void {
  for (const { topic, id } of messages) {
    if (!state.topics.has(topic)) {
      throw new MakegoodError("unknown_topic", `There is no topic ${topic}: declare it before enqueueing to it.`, { topic, id });
    }
  }
}

/** Whether or not their topics are known. */
export function accept(state: State, messages: readonly NewMessage[], options: EnqueueOptions = {}): Accepted[] {
  const { results, fresh } = check(state, messages);
  const refused = options.atomic !== "each" && results.some((result) => result.kind === "conflict");
  if (!refused) write(state, fresh, nowMs(state, options));
  return results;
}

/** What each message of the call would be, seen in its order; the ones to write. Changes nothing. */
export function check(state: State, messages: readonly NewMessage[]): { results: Accepted[]; fresh: NewMessage[] } {
  const ids = new Map<string, NewMessage>();
  const keys = new Map<string, string>();
  const find = (id: string) => ids.get(id) ?? state.messages.get(id)?.message;
  const results = messages.map((message): Accepted => {
    const known = find(message.id);
    if (known) return { kind: same(known, message) ? "accepted" : "conflict", id: message.id };
    const scope = dedupeScope(message);
    if (scope !== null) {
      const holder = keys.get(scope) ?? state.dedupe.get(scope);
      const first = holder === undefined ? undefined : find(holder);
      if (first) return { kind: same(first, message) ? "duplicate" : "conflict", id: first.id };
      keys.set(scope, message.id);
    }
    ids.set(message.id, message);
    return { kind: "accepted", id: message.id };
  });
  return { results, fresh: [...ids.values()] };
}

const same = (a: NewMessage, b: NewMessage): boolean => a.payload === b.payload;

/** The message that has this one's id or its key, and whether it is the same. */
export function findKnown(state: State, message: NewMessage): { readonly id: string; readonly same: boolean } | null {
  const scope = dedupeScope(message);
  const holder = scope === null ? undefined : state.dedupe.get(scope);
  const known = state.messages.get(message.id) ?? (holder === undefined ? undefined : state.messages.get(holder));
  return known ? { id: known.message.id, same: same(known.message, message) } : null;
}

/** Where a key is unique: within its topic and tenant, no tenant being a scope of its own. */
export function dedupeScope({ topic, tenantId, key }: NewMessage): string | null {
  return key === null ? null : JSON.stringify([topic, tenantId, key]);
}

function write(state: State, fresh: readonly NewMessage[], now: number): void {
  const lanes = new Set<string>();
  for (const message of fresh) {
    const ordered = message.orderingKey !== null && state.topics.get(message.topic)?.definition.ordering !== "none";
    const stored = admit(message, ordered, now, ++state.accepted);
    if (stored.status === "dead") stored.diedMark = ++state.marks;
    state.messages.set(message.id, stored);
    const scope = dedupeScope(message);
    if (scope !== null) state.dedupe.set(scope, message.id);
    if (stored.status === "dead") continue;
    park(state, stored);
    lanes.add(laneOf(state, stored).lane);
  }
  const [lane] = lanes;
  if (lane !== undefined) hint(state, { kind: "work", lane: lanes.size === 1 ? lane : null });
}

/** With an order the priority is ignored, without one the ordering key is: one of the two is dropped for good. */
function admit(message: NewMessage, ordered: boolean, now: number, seq: number): Stored {
  const dueMs = now + message.delayMs;
  const stored: Stored = {
    message: ordered ? { ...message, priority: 0 } : { ...message, orderingKey: null },
    ordered,
    createdMs: now,
    seq,
    status: "pending",
    attempts: 0,
    base: 0,
    generation: 0,
    revision: 0,
    suspicion: 0,
    retried: false,
    dueMs,
    heldReason: null,
    diedMs: null,
    diedMark: 0,
    groupedMark: 0,
    resolution: null,
    ingestedAttempts: null,
    settledMs: null,
    history: [],
    provenance: [],
  };
  if (message.directTry) {
    const { code, error, rejected = false } = message.directTry;
    const record = { attempt: 0, counted: false, at: new Date(now), durationMs: null, code, error } as const;
    stored.history.push({ ...record, outcome: rejected ? "reject" : "retry", nextAttemptAt: rejected ? null : new Date(dueMs) });
    if (rejected) Object.assign(stored, { status: "dead", resolution: "open", diedMs: now });
  }
  return stored;
}
