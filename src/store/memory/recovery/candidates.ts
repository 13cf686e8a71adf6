/**
 * Candidates: opened one round after the other, written under version, execution, group version and budget, with their provenance
 * and messages in the same write.
 */
import { MakegoodError } from "../../../message/errors.ts";
import type { NewMessage } from "../../../message/message.ts";
import { forbiddenMove, isClosed } from "../../candidate-state.ts";
import type {
  Candidate,
  CandidateFilter,
  CandidatePatch,
  CandidateWrite,
  CandidateWritten,
  IngestRules,
  NewProvenance,
  Paged,
} from "../../recovery.ts";
import type { At } from "../../store.ts";
import { enqueue } from "../enqueue.ts";
import { nowMs } from "../state.ts";
import { changeGroup, rootOf } from "./groups.ts";
import { paged } from "./pages.ts";
import { record } from "./provenance.ts";
import { atomically, type GroupRow, type Memory, set } from "./records.ts";

export function latestOf(memory: Memory, groupId: number): Candidate | null {
  const group = rootOf(memory, groupId);
  const id = group && memory.latest.get(group.groupId);
  return (id !== undefined && memory.candidates.get(id)) || null;
}

/** Opens the next round (or the first) of a group. */
export function openRound(memory: Memory, group: GroupRow, now: Date): Candidate {
  const round = (latestOf(memory, group.groupId)?.round ?? 0) + 1;
  const candidate: Candidate = {
    candidateId: ++memory.ids,
    groupId: group.groupId,
    round,
    version: 1,
    createdAt: now,
    updatedAt: now,
    decision: "pending",
    approvals: [],
    evaluationStatus: "unevaluated",
    evaluations: 0,
    evaluatedAt: null,
    selectedAction: null,
    confidence: null,
    evaluation: null,
    groupVersion: group.version,
    executionStatus: "pending",
    executionId: null,
    executedBy: null,
    leaseUntil: null,
    executedAt: null,
    executionResult: null,
    redriveId: null,
    owner: null,
    note: null,
  };
  set(memory, memory.candidates, candidate.candidateId, candidate);
  set(memory, memory.latest, group.groupId, candidate.candidateId);
  record(memory, [created(candidate)], now);
  return candidate;
}

function created({ groupId, candidateId, round }: Candidate): NewProvenance {
  return {
    ...{ groupId, candidateId, eventType: "created", actor: "system", actorType: "system", reason: `round ${round}` },
    ...{ ruleId: null, action: null, confidenceBefore: null, confidenceAfter: null, durationMs: null, details: null },
  };
}

/** Asks the rules for an evaluation of a group's latest candidate; the message is not enqueued yet. */
export function askEvaluation(
  memory: Memory,
  candidate: Candidate,
  rules: IngestRules,
  counts: { readonly occurrences: number; readonly before: number },
  now: Date,
): { readonly candidate: Candidate; readonly message: NewMessage | null } {
  const { version, evaluations } = candidate;
  const asked: Candidate = {
    ...candidate,
    version: version + 1,
    evaluations: evaluations + 1,
    evaluationStatus: "unevaluated",
    updatedAt: now,
  };
  const message = rules.evaluation(asked, counts.occurrences, counts.before);
  if (message === null) return { candidate, message };
  set(memory, memory.candidates, asked.candidateId, asked);
  return { candidate: asked, message };
}

/** Last in a write: what it does cannot be taken back. */
export function enqueueAll(memory: Memory, messages: readonly NewMessage[], now: Date): void {
  if (messages.length === 0) return;
  const taken = enqueue(memory.kernel, messages, { now }).find(({ kind }) => kind === "conflict");
  if (!taken) return;
  throw new MakegoodError(
    "key_conflict",
    `The key of a message in this write belongs to ${taken.id}, which has another payload; nothing was written. Use another key.`,
    { id: taken.id },
  );
}

export function reopen(
  memory: Memory,
  groupId: number,
  rules: IngestRules,
  provenance: readonly NewProvenance[],
): Candidate | null {
  return atomically(memory, () => {
    const group = rootOf(memory, groupId);
    if (!group) return null;
    const now = new Date(nowMs(memory.kernel, rules));
    const latest = latestOf(memory, groupId);
    const open = latest && !isClosed(latest) ? latest : openRound(memory, group, now);
    const { occurrenceCount } = group;
    const { candidate, message } = askEvaluation(
      memory,
      open,
      rules,
      { occurrences: occurrenceCount, before: occurrenceCount },
      now,
    );
    const { candidateId } = candidate;
    record(
      memory,
      provenance.map((line) => ({ ...line, candidateId: line.candidateId ?? candidateId })),
      now,
    );
    enqueueAll(memory, message ? [message] : [], now);
    return candidate;
  });
}

export function write(memory: Memory, request: CandidateWrite): CandidateWritten {
  return atomically(memory, () => {
    const candidate = memory.candidates.get(request.candidateId);
    if (!candidate) return { kind: "not_found" };
    const nowAt = nowMs(memory.kernel, request);
    const refused = refusal(memory, candidate, request, nowAt);
    if (refused) return { kind: refused, candidate };
    const { patch, provenance, messages = [] } = request;
    const now = new Date(nowAt);
    const written = patched(candidate, patch, now);
    const forbidden = forbiddenMove(candidate, written);
    if (forbidden) {
      const { candidateId } = candidate;
      throw new MakegoodError("wrong_state", `Candidate ${candidateId} stays as it is: ${forbidden}.`, { candidateId });
    }
    set(memory, memory.candidates, written.candidateId, written);
    if (patch.executionStatus === "executing") {
      set(memory, memory.began, written.candidateId, { by: written.executedBy, ms: nowAt });
    }
    hold(memory, candidate, patch);
    record(memory, provenance, now);
    enqueueAll(memory, messages, now);
    return { kind: "done", candidate: written };
  });
}

function refusal(
  memory: Memory,
  candidate: Candidate,
  { version, executionId, groupVersion, budget }: CandidateWrite,
  now: number,
): "version_conflict" | "group_changed" | "over_budget" | null {
  if (version !== undefined && version !== candidate.version) return "version_conflict";
  if (executionId !== undefined && executionId !== candidate.executionId) return "version_conflict";
  if (groupVersion !== undefined && groupVersion !== memory.groups.get(candidate.groupId)?.version) return "group_changed";
  if (!budget) return null;
  const counts = [...memory.began.values()].filter(({ by, ms }) => by === budget.executedBy && ms > now - budget.windowMs);
  return counts.length >= budget.executionsMax ? "over_budget" : null;
}

function patched(candidate: Candidate, patch: CandidatePatch, now: Date): Candidate {
  const { approval, clearApprovals, evaluated, executed, leaseMs, heldBy: _, ...plain } = patch;
  const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
  let approvals = clearApprovals ? [] : candidate.approvals;
  if (approval && !approvals.some(({ actor }) => actor === approval.actor)) {
    approvals = [...approvals, { ...approval, occurrenceCount: approval.occurrenceCount ?? null, at: now }];
  }
  return {
    ...candidate,
    ...given,
    approvals,
    evaluatedAt: evaluated ? now : candidate.evaluatedAt,
    executedAt: executed ? now : candidate.executedAt,
    leaseUntil: leaseUntil(candidate, leaseMs, now),
    version: candidate.version + 1,
    updatedAt: now,
  };
}

function leaseUntil(candidate: Candidate, leaseMs: number | null | undefined, now: Date): Date | null {
  if (leaseMs === undefined) return candidate.leaseUntil;
  return leaseMs === null ? null : new Date(now.getTime() + leaseMs);
}

function hold(memory: Memory, { groupId }: Candidate, { heldBy }: CandidatePatch): void {
  const group = rootOf(memory, groupId);
  if (heldBy === undefined || !group || group.heldBy === heldBy) return;
  changeGroup(memory, group.groupId, { heldBy, version: group.version + 1 });
}

function isCurrent(memory: Memory, { groupId, candidateId }: Candidate): boolean {
  return memory.latest.get(groupId) === candidateId && memory.groups.get(groupId)?.mergedInto === null;
}

export function listCandidates(memory: Memory, filter: CandidateFilter): Paged<Candidate> {
  const fits = (row: Candidate): boolean =>
    (filter.current === false || isCurrent(memory, row)) &&
    (filter.groupId === undefined || filter.groupId === row.groupId) &&
    (filter.decision === undefined || filter.decision === row.decision) &&
    (filter.evaluationStatus === undefined || filter.evaluationStatus === row.evaluationStatus) &&
    (filter.executionStatus === undefined || filter.executionStatus === row.executionStatus) &&
    (filter.action === undefined || filter.action === row.selectedAction);
  return paged([...memory.candidates.values()].filter(fits), filter, (row) => [row.candidateId], -1);
}

/** The one that ran out first comes first. */
export function expiredExecutions(memory: Memory, limit: number, at?: At): Candidate[] {
  const now = nowMs(memory.kernel, at);
  const endMs = (row: Candidate): number => row.leaseUntil?.getTime() ?? Number.POSITIVE_INFINITY;
  return [...memory.candidates.values()]
    .filter((row) => row.executionStatus === "executing" && endMs(row) < now)
    .sort((a, b) => endMs(a) - endMs(b) || a.candidateId - b.candidateId)
    .slice(0, limit);
}
