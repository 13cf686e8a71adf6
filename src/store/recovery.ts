/**
 * The recovery seam: groups of failures, the candidate (suggestion) of each, what was done and what became of it. Every method is one
 * write: counts, ledger, queued messages and provenance change together or not at all. States and policies are decided in
 * recovery/, never here. Memory and PostgreSQL have it; every engine passes testing/recovery-conformance.
 */

import type { NewMessage } from "../message/message.ts";
import type { Approval } from "./candidate-state.ts";
import type { DocumentStore } from "./documents.ts";
import type { GroupChanged, GroupMerge, GroupSplit } from "./group-changes.ts";
import type { Learned, OutcomeCount, RecoveryStats } from "./recovery-numbers.ts";
import type { RedriveStore } from "./redrive.ts";
import type { At, Store } from "./store.ts";

/** What a group is: the fingerprint and what people see of it. */
export interface GroupIdentity {
  /** Versioned key of recovery/fingerprint; unique. */
  readonly fingerprint: string;
  /** Made from the fingerprint (UUIDv5); unique. */
  readonly failureMatchId: string;
  readonly topic: string;
  readonly sink: string;
  readonly errorCode: string;
  readonly template: string;
  readonly topFrame: string | null;
  /** The hand-made group rule that decided, if one did. */
  readonly groupRule: string | null;
}

export interface Group extends GroupIdentity {
  readonly groupId: number;
  /** All that were ever counted, those of groups merged into this one included. */
  readonly occurrenceCount: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** Raised by merge, split and hold: what was approved for another version has lapsed. */
  readonly version: number;
  /** The group this one became part of; its occurrences are counted and listed there. */
  readonly mergedInto: number | null;
  /** Held for a person: nothing runs on it by itself. */
  readonly heldBy: string | null;
  /**
   * Messages of ours in it that are open dead letters now, each by the occurrence that names its present death (`attempts` equal): a
   * message is open in one group at most. 0 for a group that was merged into another.
   */
  readonly openMessages: number;
}

export type FailureSource = "message" | "api" | "stream";

/**
 * A message of ours that failed. `attempts` marks exactly this death as ingested, whatever the ledger says of the key (else a repeat
 * would be queued for ever); a message that is not dead with these attempts is left alone.
 */
export interface FailedMessage {
  readonly id: string;
  readonly generation: number;
  readonly attempts: number;
}

export interface NewOccurrence {
  /**
   * The ledger's key: the same key again counts nothing; with another hash it is a conflict. Null: no repeat by its key. Under any key a
   * message counts once per generation and group (with those merged into it): a fingerprint may change in between.
   */
  readonly requestKey: string | null;
  /** 32 hex digits. */
  readonly payloadHash: string;
  readonly source: FailureSource;
  readonly group: GroupIdentity;
  /**
   * Supplied from outside: kept, and joins the group. Known already (supplied before, or the own id of a group): its group, whatever
   * the fingerprint says. After that the fingerprint decides, then the identity's own match id; a group is made where none is known.
   */
  readonly failureMatchId: string | null;
  readonly message: FailedMessage | null;
  readonly tenantId: string | null;
  readonly skillId: string | null;
  /** At most FINGERPRINT_LIMITS.textCharsMax characters; no NUL. */
  readonly errorMessage: string;
  readonly stackTrace: string | null;
  /** The failure payload of an outside failure, as JSON text; null for our own. */
  readonly failurePayload: string | null;
  /** False: count only, queue no evaluation. */
  readonly evaluate: boolean;
}

export interface Occurrence extends Omit<NewOccurrence, "group" | "evaluate" | "payloadHash"> {
  readonly occurrenceId: number;
  /** Where it was counted; after a merge still the group that is part of another now. */
  readonly groupId: number;
  /** Of the identity it was ingested with: a supplied match id may have put it into a group of another code. */
  readonly errorCode: string;
  readonly at: Date;
  /** Whether our own message is an open dead letter by this very death; null for outside failures. */
  readonly open: boolean | null;
}

export interface IngestRules extends At {
  /** Whether a candidate that is closed (candidate-state.ts, `isClosed`) makes room for a new one. Pure; called inside the write. */
  readonly reopens: (closed: Candidate, now: Date) => boolean;
  /**
   * The message that asks for an evaluation after this write raised the count to `occurrences` from `before`; null: none is due. Called
   * inside the write (so pure), once per group and write, where at least one counted occurrence has `evaluate` and the candidate is not
   * closed. The candidate is passed as it will stand when a message is returned: `unevaluated`, `evaluations` and `version` one
   * more; so `evaluations` is 1 for the first of a round. Null leaves it as it was.
   */
  readonly evaluation: (candidate: Candidate, occurrences: number, before: number) => NewMessage | null;
}

/**
 * `conflict`: the key belongs to another payload; nothing is counted, the others of the call are. `first`: this occurrence made the group.
 * `evaluationQueued`: it was counted, has `evaluate`, and an evaluation of its group was queued with the write. Ids and `occurrenceCount` as they
 * are after the whole write, for a group that was merged those of the one it became part of. `failureMatchId`: the supplied one, else the
 * group's own.
 */
export interface Ingested {
  readonly kind: "accepted" | "duplicate" | "conflict";
  readonly groupId: number;
  readonly candidateId: number;
  readonly failureMatchId: string;
  readonly occurrenceCount: number;
  readonly first: boolean;
  readonly evaluationQueued: boolean;
}

/** A dead letter of ours that has not been ingested since it last died. */
export interface DeadFailure extends FailedMessage {
  readonly topic: string;
  readonly tenantId: string | null;
  readonly code: string | null;
  readonly error: string | null;
}

export type Decision = "pending" | "approved" | "rejected";
export type EvaluationStatus = "unevaluated" | "evaluating" | "evaluated" | "failed";
/** `unknown`: it was running when its process died; a person must say what became of it (DR-5). */
export type ExecutionStatus = "pending" | "executing" | "succeeded" | "failed" | "rolled_back" | "skipped" | "unknown";

export interface Candidate {
  readonly candidateId: number;
  readonly groupId: number;
  /**
   * 1 for the first candidate of its group. At most one of a group is current: the latest. Its first provenance line, `created` by
   * `system`, is written by the store.
   */
  readonly round: number;
  /** Raised by every write to it. */
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly decision: Decision;
  readonly approvals: readonly Approval[];
  readonly evaluationStatus: EvaluationStatus;
  /** Evaluations asked for so far. */
  readonly evaluations: number;
  readonly evaluatedAt: Date | null;
  /** The selected action. */
  readonly selectedAction: string | null;
  readonly confidence: number | null;
  /** The evaluation as JSON text: why, alternatives, what each rule contributed. */
  readonly evaluation: string | null;
  /** The group's version that was evaluated or approved. */
  readonly groupVersion: number;
  readonly executionStatus: ExecutionStatus;
  /** The fence of the running or last execution. */
  readonly executionId: string | null;
  readonly executedBy: string | null;
  /** When its lease ends; null when no lease is needed (not executing, or a redrive carries it on). */
  readonly leaseUntil: Date | null;
  readonly executedAt: Date | null;
  readonly executionResult: string | null;
  readonly redriveId: string | null;
  readonly owner: string | null;
  readonly note: string | null;
}

/** Absent members stay as they are. */
export interface CandidatePatch {
  readonly decision?: Decision | undefined;
  /** Adds one, after `clearApprovals`; the same actor twice is one, as first written. */
  readonly approval?: (Pick<Approval, "actor" | "note"> & Partial<Pick<Approval, "occurrenceCount">>) | undefined;
  readonly clearApprovals?: boolean | undefined;
  readonly evaluationStatus?: EvaluationStatus | undefined;
  /** Sets `evaluatedAt` to the store's now. */
  readonly evaluated?: boolean | undefined;
  readonly selectedAction?: string | null | undefined;
  readonly confidence?: number | null | undefined;
  readonly evaluation?: string | null | undefined;
  readonly groupVersion?: number | undefined;
  readonly executionStatus?: ExecutionStatus | undefined;
  readonly executionId?: string | null | undefined;
  readonly executedBy?: string | null | undefined;
  /** From the store's now; null takes the lease away. */
  readonly leaseMs?: number | null | undefined;
  /** Sets `executedAt` to the store's now. */
  readonly executed?: boolean | undefined;
  readonly executionResult?: string | null | undefined;
  readonly redriveId?: string | null | undefined;
  readonly owner?: string | null | undefined;
  readonly note?: string | null | undefined;
  /** Written to the group (the one it was merged into, if it was), raising its version when it changes. */
  readonly heldBy?: string | null | undefined;
}

export interface CandidateWrite extends At {
  readonly candidateId: number;
  /** Refused as `version_conflict` unless the candidate still has this version and this execution; absent: not asked. Asked first. */
  readonly version?: number | undefined;
  readonly executionId?: string | undefined;
  /** Refused unless its group still has this version. */
  readonly groupVersion?: number | undefined;
  /**
   * Refused as `over_budget` when so many executions by `executedBy` began (a write set `executing`) later than `windowMs` before now.
   * Asked last; serialised with its like.
   */
  readonly budget?: { readonly executedBy: string; readonly windowMs: number; readonly executionsMax: number } | undefined;
  readonly patch: CandidatePatch;
  readonly provenance: readonly NewProvenance[];
  /** Enqueued in the same write; a key that is taken by another payload throws `key_conflict`, and nothing is written. */
  readonly messages?: readonly NewMessage[] | undefined;
}

export type CandidateWritten =
  | { readonly kind: "done"; readonly candidate: Candidate }
  | { readonly kind: "not_found" }
  | { readonly kind: "version_conflict" | "group_changed" | "over_budget"; readonly candidate: Candidate };

export type ActorType = "system" | "human" | "agent";

/** One line of the append-only record. Nothing ever changes or deletes it (DR-40). */
export interface NewProvenance {
  readonly groupId: number | null;
  readonly candidateId: number | null;
  readonly redriveId?: string | null | undefined;
  /** created, rule_evaluated, action_selected, approved, rejected, executing, executed, … */
  readonly eventType: string;
  readonly actor: string;
  readonly actorType: ActorType;
  readonly reason: string | null;
  readonly ruleId: string | null;
  readonly action: string | null;
  readonly confidenceBefore: number | null;
  readonly confidenceAfter: number | null;
  readonly durationMs: number | null;
  /** JSON text. */
  readonly details: string | null;
}

export interface Provenance extends NewProvenance {
  readonly provenanceId: number;
  readonly at: Date;
}

export interface GroupFilter {
  readonly topic?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly tenantId?: string | undefined;
  /** True: only groups with open dead letters of ours. */
  readonly open?: boolean | undefined;
  /** True: those that were merged into others too. */
  readonly merged?: boolean | undefined;
  /** False: `openMessages` is not counted (it costs more than the rest) but 0. */
  readonly counts?: boolean | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface CandidateFilter {
  readonly groupId?: number | undefined;
  readonly decision?: Decision | undefined;
  readonly evaluationStatus?: EvaluationStatus | undefined;
  readonly executionStatus?: ExecutionStatus | undefined;
  readonly action?: string | undefined;
  /** True (default): only the latest of each group, and none of groups that were merged into others. */
  readonly current?: boolean | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface Paged<T> {
  readonly data: T[];
  readonly nextCursor: string | null;
}

export interface RecoveryStore {
  readonly documents: DocumentStore;
  readonly redrives: RedriveStore;

  /** In the order given; one write for all, at most INGEST_MAX (candidate-state.ts). Counts are exact under any concurrency. */
  ingest(occurrences: readonly NewOccurrence[], rules: IngestRules): Promise<Ingested[]>;
  /** Open ones, oldest death first. Topics that start with one of `except` are left out. */
  uningested(limit: number, except: readonly string[]): Promise<DeadFailure[]>;

  /** The group itself, also when it was merged into another. */
  group(groupId: number): Promise<Group | null>;
  /** The one it was merged into, if it was. By message: where its latest death (most attempts) was counted. */
  groupOf(
    by: { readonly fingerprint: string } | { readonly failureMatchId: string } | { readonly messageId: string },
  ): Promise<Group | null>;
  /** By the time of the last occurrence, latest first. Cursors here and below: one that no page returned throws `invalid_request`. */
  groups(filter: GroupFilter): Promise<Paged<Group>>;
  /**
   * Newest first, those of merged groups included; for a merged group those of the one it became part of. How far a store looks for one page
   * of open ones (or of others) is bounded: it may have fewer than `limit`, or none, and still lead to more.
   */
  occurrences(
    groupId: number,
    page: {
      readonly limit: number;
      readonly cursor?: string | undefined;
      readonly open?: boolean | undefined;
      readonly tenantId?: string | undefined;
    },
  ): Promise<Paged<Occurrence>>;
  merge(merge: GroupMerge): Promise<GroupChanged>;
  split(split: GroupSplit): Promise<GroupChanged>;
  /**
   * Moves occurrences and their counts between two groups (or those they were merged into). Returns how many moved: what is there
   * already, or was never in `from`, is not counted. Supplied match ids stay where they are. `left`: how `from` reads from now on.
   */
  moveOccurrences(from: number, to: number, occurrenceIds: readonly number[], at?: At & { left?: string }): Promise<number>;

  candidate(candidateId: number): Promise<Candidate | null>;
  /** The latest of a group (of the one it was merged into, if it was). */
  candidateOf(groupId: number): Promise<Candidate | null>;
  /** Newest first. */
  candidates(filter: CandidateFilter): Promise<Paged<Candidate>>;
  /** A move that no policy may make (candidate-state.ts, `forbiddenMove`) throws `wrong_state`, and nothing is written. */
  write(write: CandidateWrite): Promise<CandidateWritten>;
  /**
   * Opens the next round of a group whose latest candidate is closed (`rules.reopens` is not asked), or its first; else the latest as it is.
   * Either way `rules.evaluation` is asked, with `before` equal to `occurrences`. `provenance` is written in any case; lines
   * without a candidate get the one returned. Null: there is no such group, and nothing is written.
   */
  reopen(groupId: number, rules: IngestRules, provenance: readonly NewProvenance[]): Promise<Candidate | null>;
  /** Executing with a lease that is over. */
  expiredExecutions(limit: number, at?: At): Promise<Candidate[]>;

  /** Newest first; lines that fit all members given. A group's own lines, not those of groups merged into it. */
  provenance(
    of: { readonly groupId?: number; readonly candidateId?: number; readonly redriveId?: string },
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Paged<Provenance>>;
  /** For what changes nothing else but must be on record. */
  note(provenance: readonly NewProvenance[], at?: At): Promise<void>;

  /**
   * What is known about each action for this group (or the one it was merged into), its topic, and everywhere; by action, the nearest level first. The
   * half-life is for adding up what groups that were merged had learned.
   */
  outcomes(groupId: number, halfLifeMs: number): Promise<OutcomeCount[]>;
  /**
   * Adds outcomes on all three levels; what was there fades with the half-life first. A clock that runs behind makes nothing grow: what
   * it reports weighs what it weighs by the later time. Groups that do not exist are left out.
   */
  learn(learned: readonly Learned[], halfLifeMs: number, at?: At): Promise<void>;
  /** Topics that start with one of `except` do not count as uningested. */
  stats(except: readonly string[]): Promise<RecoveryStats>;
}

/** A store that keeps recovery records as well. */
export interface WithRecovery {
  readonly recovery: RecoveryStore;
}

/** The recovery seam of a store; null where it has none and the endpoints answer `needs_postgres`. */
export function recoveryOf(store: Store): RecoveryStore | null {
  return (store as Store & Partial<WithRecovery>).recovery ?? null;
}
