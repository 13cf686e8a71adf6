/**
 * MOVE in memory: messages read and written as they stand.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { NewMessage } from "../../message/message.ts";
import { payloadHash } from "../../message/validate.ts";
import type { MovableMessage, MovablePage, MovableRead, PutResult } from "../movable.ts";
import { checkTopics, dedupeScope, findKnown } from "./enqueue.ts";
import { keyOf, park, tidy } from "./lanes.ts";
import { view } from "./read.ts";
import { hint, type State, type Stored } from "./state.ts";

const isOpen = ({ settledMs }: Stored): boolean => settledMs === null;

export function readMovable(state: State, { all, after = "", limit, bytesMax }: MovableRead): MovablePage {
  const rest = [...state.messages.values()]
    .filter((stored) => stored.message.id > after && (all || isOpen(stored)))
    .sort((a, b) => (a.message.id < b.message.id ? -1 : 1));
  const page: Stored[] = [];
  let bytes = 0;
  for (const stored of rest.slice(0, limit)) {
    bytes += Buffer.byteLength(stored.message.payload);
    if (page.length > 0 && bytes > bytesMax) break;
    page.push(stored);
  }
  return {
    messages: page.map((stored) => movable(state, stored)),
    next: page.length < rest.length ? (page.at(-1) as Stored).message.id : null,
  };
}

export function findMovable(state: State, ids: readonly string[]): MovableMessage[] {
  return ids.flatMap((id) => state.messages.get(id) ?? []).map((stored) => movable(state, stored));
}

function movable(state: State, stored: Stored): MovableMessage {
  const { lastError, lastCode, ...seen } = view(stored);
  const { base, suspicion, retried, ordered, seq, settledMs, history, provenance, message } = stored;
  const blocksOrder = ordered && keyOf(state, stored).blockedBy === message.id;
  if (ordered) tidy(state, stored);
  const waits = stored.status === "pending" || stored.status === "processing";
  return {
    ...seen,
    base: waits ? base : 0,
    suspicion: waits ? suspicion : 0,
    retried: waits && retried && suspicion === 0,
    handedDown: message.directTry !== undefined,
    place: ordered ? seq : null,
    blocksOrder,
    settledAt: settledMs === null ? null : new Date(settledMs),
    history: [...history],
    provenance: [...provenance],
  };
}

export function putMovable(state: State, messages: readonly MovableMessage[]): PutResult[] {
  const given = messages.map(newMessage);
  checkTopics(state, given);
  if (messages.some(({ status }) => status === "processing")) {
    throw new MakegoodError("invalid_message", "A message in flight cannot be put: say first what became of it.");
  }
  const results = messages.map((moved, i): PutResult => {
    const message = given[i] as NewMessage;
    const known = findKnown(state, message);
    if (!known) {
      write(state, moved, message);
      return { kind: "put", id: moved.id };
    }
    if (!known.same) return { kind: "conflict", id: known.id };
    return { kind: known.id === moved.id ? "present" : "duplicate", id: known.id };
  });
  if (results.some(({ kind }) => kind === "put")) hint(state, { kind: "work", lane: null });
  return results;
}

function newMessage(moved: MovableMessage): NewMessage {
  const { id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion, handedDown } = moved;
  const fixed = { id, topic, tenantId, key, payload, priority, orderingKey, traceparent, schemaVersion };
  const directTry = handedDown ? { directTry: { code: null, error: null } } : {};
  return { ...fixed, payloadHash: payloadHash(payload), delayMs: 0, ...directTry };
}

function write(state: State, moved: MovableMessage, message: NewMessage): void {
  const ordered = message.orderingKey !== null && state.topics.get(message.topic)?.definition.ordering !== "none";
  const seq = ordered ? (moved.place ?? 0) : ++state.accepted;
  state.accepted = Math.max(state.accepted, seq);
  const { status, attempts, base, generation, revision, suspicion, retried, heldReason, resolution } = moved;
  const stored: Stored = {
    message: ordered ? { ...message, priority: 0 } : { ...message, orderingKey: null },
    ordered,
    createdMs: moved.createdAt.getTime(),
    seq,
    ...{ status, attempts, base, generation, revision, suspicion, retried, heldReason, resolution },
    dueMs: (moved.nextAttemptAt ?? moved.createdAt).getTime(),
    diedMs: moved.diedAt?.getTime() ?? null,
    diedMark: status === "dead" ? ++state.marks : 0,
    groupedMark: 0,
    ingestedAttempts: null,
    settledMs: moved.settledAt?.getTime() ?? null,
    history: [...moved.history],
    provenance: [...moved.provenance],
  };
  state.messages.set(message.id, stored);
  const scope = dedupeScope(message);
  if (scope !== null) state.dedupe.set(scope, message.id);
  if (ordered && moved.blocksOrder) keyOf(state, stored).blockedBy = message.id;
  if (status === "pending") park(state, stored);
  else if (ordered) tidy(state, stored);
}
