/** Merge, split and moving occurrences: counts go along, none is lost, none is counted twice. */
import { isClosed, isExecuting } from "../../candidate-state.ts";
import type { GroupChanged, GroupMerge, GroupSplit } from "../../group-changes.ts";
import type { NewProvenance } from "../../recovery.ts";
import { nowMs } from "../state.ts";
import { latestOf } from "./candidates.ts";
import { putDocument } from "./documents.ts";
import { changeGroup, familyOf, groupView, makeGroup, openMessage, place, rootOf } from "./groups.ts";
import { record } from "./provenance.ts";
import { atomically, type GroupRow, type Memory, set } from "./records.ts";

const earlier = (a: Date, b: Date): Date => (a < b ? a : b);
const later = (a: Date, b: Date): Date => (a > b ? a : b);

export function merge(memory: Memory, request: GroupMerge): GroupChanged {
  return atomically(memory, (): GroupChanged => {
    const now = new Date(nowMs(memory.kernel, request));
    const rows = [request.from, request.into].map((id) => memory.groups.get(id));
    const [from, into] = rows;
    if (!from) return { kind: "not_found", groupId: request.from };
    if (!into) return { kind: "not_found", groupId: request.into };
    const closed = [from, into].find((row) => !changeable(memory, row));
    if (closed || from === into) return { kind: "wrong_state", group: groupView(memory, closed ?? into) };
    if (request.document && putDocument(memory, request.document, { now }).kind !== "done") return { kind: "version_conflict" };
    endCandidate(memory, from, into, request.provenance[0], now);
    for (const groupId of familyOf(memory, from.groupId)) changeGroup(memory, groupId, { mergedInto: into.groupId });
    changeGroup(memory, from.groupId, { version: from.version + 1 });
    const merged = changeGroup(memory, into.groupId, {
      occurrenceCount: into.occurrenceCount + from.occurrenceCount,
      firstAt: earlier(into.firstAt, from.firstAt),
      lastAt: later(into.lastAt, from.lastAt),
      heldBy: into.heldBy ?? from.heldBy,
      version: into.version + 1,
    });
    record(memory, request.provenance, now);
    return { kind: "done", group: groupView(memory, merged) };
  });
}

function changeable(memory: Memory, row: GroupRow): boolean {
  const latest = latestOf(memory, row.groupId);
  return row.mergedInto === null && !(latest && isExecuting(latest));
}

/** The open candidate of a group that becomes part of another has nothing left to be about. */
function endCandidate(memory: Memory, from: GroupRow, into: GroupRow, by: NewProvenance | undefined, now: Date): void {
  const open = latestOf(memory, from.groupId);
  if (!open || isClosed(open)) return;
  const approved = open.decision === "approved";
  const ended = approved ? ({ executionStatus: "skipped" } as const) : ({ decision: "rejected" } as const);
  set(memory, memory.candidates, open.candidateId, { ...open, ...ended, version: open.version + 1, updatedAt: now });
  const line: NewProvenance = {
    groupId: from.groupId,
    candidateId: open.candidateId,
    eventType: approved ? "skipped" : "rejected",
    actor: by?.actor ?? "system",
    actorType: by?.actorType ?? "system",
    reason: `merged into group ${into.groupId}`,
    ...{
      ruleId: null,
      action: open.selectedAction,
      confidenceBefore: null,
      confidenceAfter: null,
      durationMs: null,
      details: null,
    },
  };
  record(memory, [line], now);
}

export function split(memory: Memory, request: GroupSplit): GroupChanged {
  return atomically(memory, (): GroupChanged => {
    const now = new Date(nowMs(memory.kernel, request));
    const group = memory.groups.get(request.groupId);
    if (!group) return { kind: "not_found", groupId: request.groupId };
    if (!changeable(memory, group)) return { kind: "wrong_state", group: groupView(memory, group) };
    const { fingerprint, failureMatchId } = request.identity;
    const known = memory.groups.get(memory.fingerprints.get(fingerprint) ?? memory.matches.get(failureMatchId) ?? 0);
    if (known && (known === group || !changeable(memory, known))) {
      return { kind: "wrong_state", group: groupView(memory, known) };
    }
    if (request.document && putDocument(memory, request.document, { now }).kind !== "done") return { kind: "version_conflict" };
    changeGroup(memory, group.groupId, { version: group.version + 1 });
    const found = known
      ? changeGroup(memory, known.groupId, { version: known.version + 1 })
      : makeGroup(memory, request.identity, now);
    record(memory, request.provenance, now);
    return { kind: "done", group: groupView(memory, found) };
  });
}

export function moveOccurrences(memory: Memory, from: number, to: number, occurrenceIds: readonly number[]): number {
  return atomically(memory, () => {
    const [source, target] = [rootOf(memory, from), rootOf(memory, to)];
    if (!source || !target || source === target) return 0;
    const family = new Set(familyOf(memory, source.groupId));
    let moved = 0;
    let { firstAt, lastAt } = target;
    for (const id of new Set(occurrenceIds)) {
      const row = memory.occurrences.get(id);
      if (!row || !family.has(row.groupId)) continue;
      place(memory, { ...row, groupId: target.groupId });
      const open = openMessage(memory, row);
      if (open) open.groupedMark = ++memory.kernel.marks;
      firstAt = earlier(firstAt, row.at);
      lastAt = later(lastAt, row.at);
      moved++;
    }
    if (moved === 0) return 0;
    changeGroup(memory, source.groupId, { occurrenceCount: source.occurrenceCount - moved });
    changeGroup(memory, target.groupId, { occurrenceCount: target.occurrenceCount + moved, firstAt, lastAt });
    return moved;
  });
}
