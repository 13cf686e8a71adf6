/**
 * Groups and their occurrences: who is part of whom, what is counted where, and which of our messages lie open in each.
 */
import type { Group, GroupFilter, GroupIdentity, Occurrence, Paged } from "../../recovery.ts";
import type { Stored } from "../state.ts";
import { type PageRequest, paged } from "./pages.ts";
import { type GroupRow, type Memory, type OccurrenceRow, set } from "./records.ts";

/** The group, or the one it was merged into; pointers are flat, so one step is enough. */
export function rootOf(memory: Memory, groupId: number): GroupRow | undefined {
  const row = memory.groups.get(groupId);
  return row && row.mergedInto !== null ? memory.groups.get(row.mergedInto) : row;
}

/** A group and all that were merged into it. */
export function familyOf(memory: Memory, groupId: number): number[] {
  const merged = [...memory.groups.values()].filter(({ mergedInto }) => mergedInto === groupId);
  return [groupId, ...merged.map((row) => row.groupId)];
}

export function makeGroup(memory: Memory, identity: GroupIdentity, now: Date): GroupRow {
  const { fingerprint, failureMatchId, topic, sink, errorCode, template, topFrame, groupRule } = identity;
  const row: GroupRow = {
    ...{ fingerprint, failureMatchId, topic, sink, errorCode, template, topFrame, groupRule },
    ...{ groupId: ++memory.ids, occurrenceCount: 0, firstAt: now, lastAt: now, version: 1, mergedInto: null, heldBy: null },
  };
  set(memory, memory.groups, row.groupId, row);
  set(memory, memory.fingerprints, fingerprint, row.groupId);
  set(memory, memory.matches, failureMatchId, row.groupId);
  return row;
}

export function changeGroup(memory: Memory, groupId: number, change: Partial<GroupRow>): GroupRow {
  const row = { ...(memory.groups.get(groupId) as GroupRow), ...change };
  set(memory, memory.groups, groupId, row);
  return row;
}

/** Puts an occurrence under a group; takes it from where it was. Counts are the caller's. */
export function place(memory: Memory, occurrence: OccurrenceRow): void {
  const before = memory.occurrences.get(occurrence.occurrenceId);
  const { occurrenceId, groupId, message } = occurrence;
  set(memory, memory.occurrences, occurrenceId, occurrence);
  if (before?.groupId !== groupId) {
    if (before) memberSet(memory, before.groupId).delete(occurrenceId);
    memberSet(memory, groupId).add(occurrenceId);
    memory.undo?.push(() => {
      memberSet(memory, groupId).delete(occurrenceId);
      if (before) memberSet(memory, before.groupId).add(occurrenceId);
    });
  }
  if (!before && message) {
    set(memory, memory.byMessage, message.id, [...(memory.byMessage.get(message.id) ?? []), occurrenceId]);
  }
}

function memberSet(memory: Memory, groupId: number): Set<number> {
  let found = memory.members.get(groupId);
  if (!found) {
    found = new Set();
    memory.members.set(groupId, found);
  }
  return found;
}

/** Those of a group and of all that were merged into it. */
export function* membersOf(memory: Memory, rootId: number): Generator<OccurrenceRow> {
  for (const groupId of familyOf(memory, rootId)) {
    for (const id of memory.members.get(groupId) ?? []) yield memory.occurrences.get(id) as OccurrenceRow;
  }
}

/** The message of an occurrence, if it is an open dead letter by this very death. */
export function openMessage(memory: Memory, { message }: OccurrenceRow): Stored | null {
  const stored = message ? memory.kernel.messages.get(message.id) : undefined;
  return stored?.status === "dead" && stored.resolution === "open" && stored.attempts === message?.attempts ? stored : null;
}

function openIn(memory: Memory, rootId: number): number {
  const ids = new Set<string>();
  for (const occurrence of membersOf(memory, rootId)) {
    if (openMessage(memory, occurrence)) ids.add((occurrence.message as { id: string }).id);
  }
  return ids.size;
}

export function groupView(memory: Memory, row: GroupRow): Group {
  return { ...row, openMessages: row.mergedInto === null ? openIn(memory, row.groupId) : 0 };
}

/** Where the latest death of a message was counted. */
export function groupOfMessage(memory: Memory, messageId: string): GroupRow | undefined {
  const rows = (memory.byMessage.get(messageId) ?? []).map((id) => memory.occurrences.get(id) as OccurrenceRow);
  const attempts = (row: OccurrenceRow): number => row.message?.attempts ?? 0;
  const [last] = rows.sort((a, b) => attempts(b) - attempts(a) || b.occurrenceId - a.occurrenceId);
  return last && rootOf(memory, last.groupId);
}

export function listGroups(memory: Memory, filter: GroupFilter): Paged<Group> {
  const fits = (row: GroupRow): boolean =>
    (filter.merged === true || row.mergedInto === null) &&
    (filter.topic === undefined || filter.topic === row.topic) &&
    (filter.errorCode === undefined || filter.errorCode === row.errorCode) &&
    (filter.open !== true || groupView(memory, row).openMessages > 0) &&
    (filter.tenantId === undefined || hasTenant(memory, row, filter.tenantId));
  const rows = [...memory.groups.values()].filter(fits);
  const page = paged(rows, filter, (row) => [row.lastAt.getTime(), row.groupId], -1);
  const seen = (row: GroupRow): Group => (filter.counts === false ? { ...row, openMessages: 0 } : groupView(memory, row));
  return { ...page, data: page.data.map(seen) };
}

function hasTenant(memory: Memory, { groupId }: GroupRow, tenantId: string): boolean {
  for (const occurrence of membersOf(memory, groupId)) if (occurrence.tenantId === tenantId) return true;
  return false;
}

export function listOccurrences(
  memory: Memory,
  groupId: number,
  page: PageRequest & { readonly open?: boolean | undefined; readonly tenantId?: string | undefined },
): Paged<Occurrence> {
  const root = rootOf(memory, groupId);
  const rows = root ? [...membersOf(memory, root.groupId)] : [];
  const views = rows.map(({ payloadHash: _, ...row }): Occurrence => {
    const open = row.message ? openMessage(memory, { ...row, payloadHash: _ }) !== null : null;
    return { ...row, open };
  });
  const fits = ({ open, tenantId }: Occurrence): boolean =>
    (page.open === undefined || page.open === open) && (page.tenantId === undefined || page.tenantId === tenantId);
  return paged(views.filter(fits), page, (row) => [row.occurrenceId], -1);
}
