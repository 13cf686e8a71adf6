/** Which open dead letters a select means now, oldest death first, and what such a list would be. */
import type { RedrivePreview, RedriveSelect } from "../../redrive.ts";
import { readSeen, type SeenMark, seenText } from "../../shared/seen-mark.ts";
import { view } from "../read.ts";
import type { Stored } from "../state.ts";
import { groupOfMessage, membersOf, openMessage, rootOf } from "./groups.ts";
import { byDeath } from "./ingest.ts";
import type { Memory } from "./records.ts";

export interface Selected {
  readonly stored: Stored;
  /** The group it is open in. */
  readonly groupId: number | null;
}

export function select(memory: Memory, request: RedriveSelect): Selected[] {
  const mark = request.seen === undefined ? null : readSeen(request.seen, (position) => /^\d{1,15}$/.test(position));
  const ids = request.ids && new Set(request.ids);
  const fits = ({ message, status, resolution }: Stored): boolean =>
    status === "dead" &&
    resolution === "open" &&
    (ids === undefined || ids.has(message.id)) &&
    (request.topic === undefined || request.topic === message.topic) &&
    (request.tenantId === undefined || request.tenantId === message.tenantId);
  return candidatesFor(memory, request)
    .filter((stored) => fits(stored) && (mark === null || wasSeen(memory, request, stored, mark)))
    .filter((stored) => request.errorCode === undefined || view(stored).lastCode === request.errorCode)
    .sort(byDeath)
    .slice(0, Math.max(0, request.limit))
    .map((stored) => ({ stored, groupId: openGroup(memory, stored) }));
}

function wasSeen(memory: Memory, { groupId }: RedriveSelect, stored: Stored, { position, group, last }: SeenMark): boolean {
  if (
    last !== null &&
    last.id !== stored.message.id &&
    byDeath(stored, { diedMs: Number(last.diedUs) / 1_000, message: last }) > 0
  )
    return false;
  if (groupId === undefined) return stored.diedMark <= Number(position);
  const root = rootOf(memory, groupId);
  const same = group === null || (root?.groupId === group.id && root.version === group.version);
  return same && stored.groupedMark <= Number(position);
}

function markOf(memory: Memory, { groupId, limit }: RedriveSelect, listed: readonly Stored[]): string {
  const root = groupId === undefined ? undefined : rootOf(memory, groupId);
  const last = listed.length >= limit ? listed.at(-1) : undefined;
  return seenText({
    position: String(memory.kernel.marks),
    group: root ? { id: root.groupId, version: root.version } : null,
    last: last ? { diedUs: String((last.diedMs ?? 0) * 1_000), id: last.message.id } : null,
  });
}

function candidatesFor(memory: Memory, { groupId }: RedriveSelect): Stored[] {
  if (groupId === undefined) return [...memory.kernel.messages.values()];
  const root = rootOf(memory, groupId);
  const open = root ? [...membersOf(memory, root.groupId)].map((row) => openMessage(memory, row)) : [];
  return [...new Set(open)].filter((stored) => stored !== null);
}

function openGroup(memory: Memory, { message, attempts, ingestedAttempts }: Stored): number | null {
  return ingestedAttempts === attempts ? (groupOfMessage(memory, message.id)?.groupId ?? null) : null;
}

export function preview(memory: Memory, request: RedriveSelect): RedrivePreview {
  const selected = select(memory, request).map(({ stored }) => stored);
  const topics = new Map<string, number>();
  for (const { message } of selected) topics.set(message.topic, (topics.get(message.topic) ?? 0) + 1);
  const oldest = selected[0]?.diedMs;
  return {
    messages: selected.length,
    overGeneration: selected.filter(({ generation }) => generation >= request.generationMax).length,
    topics: [...topics]
      .map(([topic, messages]) => ({ topic, messages }))
      .sort((a, b) => b.messages - a.messages || (a.topic < b.topic ? -1 : 1)),
    tenants: new Set(selected.map(({ message }) => message.tenantId)).size,
    oldestAt: typeof oldest === "number" ? new Date(oldest) : null,
    seen: request.seen ?? markOf(memory, request, selected),
  };
}
