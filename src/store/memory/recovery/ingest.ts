/**
 * Ingest: each failure counted once in its group, by its request key; candidate, evaluation message and the mark on the dead letter are
 * in the same write (DR-26).
 */
import { MakegoodError } from "../../../message/errors.ts";
import type { NewMessage } from "../../../message/message.ts";
import { INGEST_MAX, isClosed } from "../../candidate-state.ts";
import type { Candidate, DeadFailure, FailedMessage, Ingested, IngestRules, NewOccurrence } from "../../recovery.ts";
import { view } from "../read.ts";
import { nowMs, type Stored } from "../state.ts";
import { askEvaluation, enqueueAll, latestOf, openRound } from "./candidates.ts";
import { changeGroup, makeGroup, place, rootOf } from "./groups.ts";
import { atomically, type GroupRow, type Memory, type OccurrenceRow, set } from "./records.ts";

/** What became of one occurrence, before candidates and evaluations of the whole write are known. */
type Recorded = Pick<Ingested, "kind" | "groupId" | "first">;

interface Raised {
  readonly before: number;
  evaluate: boolean;
}

export function ingest(memory: Memory, occurrences: readonly NewOccurrence[], rules: IngestRules): Ingested[] {
  if (occurrences.length > INGEST_MAX) {
    throw new MakegoodError("invalid_request", `One ingest takes ${INGEST_MAX} failures at most, not ${occurrences.length}.`);
  }
  return atomically(memory, () => {
    const now = new Date(nowMs(memory.kernel, rules));
    const raised = new Map<number, Raised>();
    const recorded = occurrences.map((occurrence) => recordOne(memory, occurrence, raised, now));
    const messages: NewMessage[] = [];
    const current = new Map<number, { candidate: Candidate; queued: boolean }>();
    for (const groupId of new Set(recorded.map((each) => each.groupId))) {
      const { candidate, message } = suggest(memory, groupId, raised.get(groupId), rules, now);
      if (message) messages.push(message);
      current.set(groupId, { candidate, queued: message !== null });
    }
    enqueueAll(memory, messages, now);
    for (const { message } of occurrences) if (message) mark(memory, message);
    return recorded.map(({ kind, groupId, first }, i): Ingested => {
      const { evaluate, failureMatchId } = occurrences[i] as NewOccurrence;
      const group = memory.groups.get(groupId) as GroupRow;
      const { candidate, queued } = current.get(groupId) as { candidate: Candidate; queued: boolean };
      return {
        kind,
        groupId,
        candidateId: candidate.candidateId,
        failureMatchId: failureMatchId ?? group.failureMatchId,
        occurrenceCount: group.occurrenceCount,
        first,
        evaluationQueued: queued && evaluate && kind === "accepted",
      };
    });
  });
}

/** The latest candidate of a group after this write, opened where there is room for one; an evaluation where one is due. */
function suggest(
  memory: Memory,
  groupId: number,
  raised: Raised | undefined,
  rules: IngestRules,
  now: Date,
): { readonly candidate: Candidate; readonly message: NewMessage | null } {
  const group = memory.groups.get(groupId) as GroupRow;
  let candidate = latestOf(memory, groupId);
  if (!candidate || (raised && isClosed(candidate) && rules.reopens(candidate, now))) candidate = openRound(memory, group, now);
  if (!raised?.evaluate || isClosed(candidate)) return { candidate, message: null };
  return askEvaluation(memory, candidate, rules, { occurrences: group.occurrenceCount, before: raised.before }, now);
}

function recordOne(memory: Memory, occurrence: NewOccurrence, raised: Map<number, Raised>, now: Date): Recorded {
  const { requestKey, payloadHash, message } = occurrence;
  const knownId = requestKey === null ? undefined : memory.ledger.get(requestKey);
  const known = knownId === undefined ? undefined : memory.occurrences.get(knownId);
  if (known) {
    const { groupId } = rootOf(memory, known.groupId) as GroupRow;
    if (known.payloadHash !== payloadHash) return { kind: "conflict", groupId, first: false };
    return repeated(memory, known, message, groupId);
  }
  const found = groupFor(memory, occurrence);
  const counted = message && found && countedIn(memory, message, found.groupId);
  if (counted) return repeated(memory, counted, message, found.groupId);
  const group = found ?? makeGroup(memory, occurrence.group, now);
  if (occurrence.failureMatchId !== null && !memory.matches.has(occurrence.failureMatchId)) {
    set(memory, memory.matches, occurrence.failureMatchId, group.groupId);
  }
  const mine = raised.get(group.groupId) ?? { before: group.occurrenceCount, evaluate: false };
  mine.evaluate ||= occurrence.evaluate;
  raised.set(group.groupId, mine);
  const lastAt = now > group.lastAt ? now : group.lastAt;
  changeGroup(memory, group.groupId, { occurrenceCount: group.occurrenceCount + 1, lastAt });
  const row = rowOf(occurrence, ++memory.ids, group.groupId, now);
  place(memory, row);
  if (requestKey !== null) set(memory, memory.ledger, requestKey, row.occurrenceId);
  return { kind: "accepted", groupId: group.groupId, first: !found };
}

function repeated(memory: Memory, known: OccurrenceRow, message: FailedMessage | null, groupId: number): Recorded {
  if (message && known.message && message.attempts > known.message.attempts) place(memory, { ...known, message });
  return { kind: "duplicate", groupId, first: false };
}

/** This generation of the message in this group or one that was merged into it, under any key. */
function countedIn(memory: Memory, { id, generation }: FailedMessage, rootId: number): OccurrenceRow | undefined {
  return (memory.byMessage.get(id) ?? [])
    .map((occurrenceId) => memory.occurrences.get(occurrenceId) as OccurrenceRow)
    .find((row) => row.message?.generation === generation && rootOf(memory, row.groupId)?.groupId === rootId);
}

/** A match id that is known, then the fingerprint, then the match id that is made from it. */
function groupFor(memory: Memory, { failureMatchId, group }: NewOccurrence): GroupRow | undefined {
  const id =
    (failureMatchId === null ? undefined : memory.matches.get(failureMatchId)) ??
    memory.fingerprints.get(group.fingerprint) ??
    memory.matches.get(group.failureMatchId);
  return id === undefined ? undefined : rootOf(memory, id);
}

function rowOf(occurrence: NewOccurrence, occurrenceId: number, groupId: number, at: Date): OccurrenceRow {
  const { group, evaluate: _, ...fields } = occurrence;
  return { ...fields, occurrenceId, groupId, errorCode: group.errorCode, at };
}

function mark({ kernel }: Memory, { id, attempts }: FailedMessage): void {
  const stored = kernel.messages.get(id);
  if (stored?.status !== "dead" || stored.attempts !== attempts) return;
  if (stored.ingestedAttempts !== attempts) stored.groupedMark = ++kernel.marks;
  stored.ingestedAttempts = attempts;
}

/** Oldest death first. */
export function uningested(memory: Memory, limit: number, except: readonly string[]): DeadFailure[] {
  return waiting(memory, except)
    .sort(byDeath)
    .slice(0, limit)
    .map((stored) => {
      const { id, topic, tenantId, generation, attempts, lastCode, lastError } = view(stored);
      return { id, topic, tenantId, generation, attempts, code: lastCode, error: lastError };
    });
}

/** Open dead letters whose present death was not ingested. */
export function waiting(memory: Memory, except: readonly string[]): Stored[] {
  return [...memory.kernel.messages.values()].filter(
    ({ status, resolution, attempts, ingestedAttempts, message }) =>
      status === "dead" &&
      resolution === "open" &&
      ingestedAttempts !== attempts &&
      !except.some((prefix) => message.topic.startsWith(prefix)),
  );
}

type Death = Pick<Stored, "diedMs"> & { readonly message: Pick<NewMessage, "id"> };

export function byDeath(a: Death, b: Death): number {
  return (a.diedMs ?? 0) - (b.diedMs ?? 0) || (a.message.id < b.message.id ? -1 : 1);
}
