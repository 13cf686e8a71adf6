/**
 * Reading back: one message, a page of them, how many there are of each state, and the history of one.
 */
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { AttemptRecord, MessageView, ProvenanceRecord } from "../../message/message.ts";
import { isUuid } from "../../platform/ids.ts";
import type { ListFilter, Page, StatusCount } from "../store.ts";
import { byDue } from "./lanes.ts";
import { nowMs, type State, type Stored } from "./state.ts";

export function view(stored: Stored): MessageView {
  const { id, topic, tenantId, key, orderingKey, priority, payload, traceparent, schemaVersion } = stored.message;
  const failed = stored.history.findLast(({ outcome }) => outcome !== "delivered" && outcome !== "duplicate");
  const due = stored.status === "pending" && stored.heldReason === null;
  return {
    id,
    topic,
    tenantId,
    key,
    orderingKey,
    priority,
    payload,
    traceparent,
    schemaVersion,
    createdAt: new Date(stored.createdMs),
    status: stored.status,
    attempts: stored.attempts,
    generation: stored.generation,
    revision: stored.revision,
    nextAttemptAt: due ? new Date(stored.dueMs) : null,
    heldReason: stored.heldReason,
    diedAt: stored.diedMs === null ? null : new Date(stored.diedMs),
    resolution: stored.resolution,
    lastError: failed?.error ?? null,
    lastCode: failed?.code ?? null,
  };
}

export function list(state: State, filter: ListFilter): Page {
  const limit = Math.min(Math.max(1, Math.trunc(filter.limit)), LIMITS.pageMax);
  const shown = (stored: Stored) => (filter.payload === false ? { ...view(stored), payload: "" } : view(stored));
  if (filter.dueIn) return { data: dueNow(state, filter.dueIn, limit, nowMs(state, filter)).map(shown), nextCursor: null };
  const before = filter.cursor === undefined ? null : readCursor(filter.cursor);
  const found = [...state.messages.values()]
    .filter((stored) => (before === null || stored.message.id < before) && matches(stored, filter))
    .sort((a, b) => (a.message.id < b.message.id ? 1 : -1));
  const data = found.slice(0, limit).map(shown);
  const last = data.at(-1);
  return { data, nextCursor: found.length > limit && last ? writeCursor(last.id) : null };
}

function dueNow(state: State, lanes: readonly string[], limit: number, now: number): Stored[] {
  const fronts = lanes.flatMap((lane) => state.lanes.get(lane)?.due.slice(0, limit) ?? []);
  return fronts
    .filter(({ dueMs }) => dueMs <= now)
    .sort(byDue)
    .slice(0, limit);
}

function matches({ message, status, resolution }: Stored, filter: ListFilter): boolean {
  return (
    (filter.status === undefined || filter.status === status) &&
    (filter.resolution === undefined || filter.resolution === resolution) &&
    (filter.topic === undefined || filter.topic === message.topic) &&
    (filter.tenantId === undefined || filter.tenantId === message.tenantId) &&
    (filter.key === undefined || filter.key === message.key)
  );
}

const writeCursor = (id: string): string => Buffer.from(id, "latin1").toString("base64url");

function readCursor(cursor: string): string {
  const id = Buffer.from(cursor, "base64url").toString("latin1");
  if (!isUuid(id)) throw new MakegoodError("invalid_message", "This cursor is not one that a page before returned.", { cursor });
  return id;
}

export function counts(state: State, options: { readonly delivered?: boolean | undefined } = {}): StatusCount[] {
  const now = nowMs(state);
  const groups = new Map<string, { stored: Stored; count: number; oldestMs: number }>();
  for (const stored of state.messages.values()) {
    if (stored.status === "delivered" && !options.delivered) continue;
    const name = JSON.stringify([stored.message.topic, stored.status, stored.resolution]);
    const group = groups.get(name) ?? { stored, count: 0, oldestMs: 0 };
    groups.set(name, { stored, count: group.count + 1, oldestMs: Math.max(group.oldestMs, now - stored.createdMs) });
  }
  return [...groups.values()].map(({ stored, count, oldestMs }) => ({
    topic: stored.message.topic,
    status: stored.status,
    resolution: stored.resolution,
    count,
    oldestMs,
  }));
}

export function history(state: State, id: string): { attempts: AttemptRecord[]; provenance: ProvenanceRecord[] } {
  const stored = state.messages.get(id);
  return { attempts: [...(stored?.history ?? [])], provenance: [...(stored?.provenance ?? [])] };
}
