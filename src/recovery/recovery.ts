/**
 * The operations of the recovery engine: what the server, the command line and a program may ask of it. The folders beside this
 * file each carry out one part; engine.ts puts them together. A refusal is thrown as a MakegoodError whose code and text say what
 * to do.
 */
import type { MessageView } from "../message/message.ts";
import type { ActionInfo, RecoveryAction } from "./actions/action.ts";
import type { Candidate, CandidateFilter } from "./candidates/candidate.ts";
import type { RecoveryStats } from "./confidence/numbers.ts";
import type { StoredDocument } from "./documents.ts";
import type { Occurrence } from "./failures/failure.ts";
import type { Group, GroupFilter } from "./groups/group.ts";
import type { HookName, HookOptions, RecoveryHooks } from "./hooks.ts";
import type { Paged } from "./pages.ts";
import type { ActorType, Provenance } from "./provenance.ts";
import type { MessageOrigin, Redrive, RedriveItem, RedrivePreview, RedriveStatus } from "./redrive/redrive.ts";
import type { ExecutionRequest, RedriveRequest } from "./redrive/request.ts";
import type { Evaluation } from "./rules/evaluate.ts";
import type { Rule } from "./rules/rule.ts";

/** Who asks. A token's name, or a program's. */
export interface Actor {
  readonly actor: string;
  readonly actorType: ActorType;
}

/** A failure as another service reports it, already checked for shape and limits. */
export interface FailureReport {
  readonly failureMatchId: string | null;
  readonly idempotencyKey: string | null;
  readonly source: "api" | "stream";
  readonly topic: string | null;
  readonly sink: string | null;
  /** error_type or error_code of the payload. */
  readonly errorCode: string;
  readonly errorMessage: string;
  readonly stackTrace: string | null;
  readonly skillId: string | null;
  readonly tenantId: string | null;
  /** The whole failure_payload, exact text: what the ledger's hash is made of. */
  readonly failurePayload: string;
  readonly enqueueEvaluation: boolean;
}

export interface IngestAnswer {
  readonly candidateId: number;
  readonly groupId: number;
  readonly failureMatchId: string;
  readonly status: "accepted" | "duplicate";
  readonly occurrenceCount: number;
  readonly evaluationQueued: boolean;
}

export interface EvaluateRequest {
  readonly errorCode: string;
  readonly errorMessage?: string | undefined;
  readonly stackTrace?: string | undefined;
  readonly topic?: string | undefined;
  readonly sink?: string | undefined;
  readonly skillId?: string | undefined;
  readonly occurrenceCount?: number | undefined;
}

export interface EvaluateAnswer {
  readonly evaluation: Evaluation;
  readonly fingerprint: string;
  readonly failureMatchId: string;
  readonly template: string;
  /** The group it would join; null: it would be a new one. */
  readonly groupId: number | null;
  readonly durationMs: number;
}

export interface GroupDetail {
  readonly group: Group;
  readonly candidate: Candidate | null;
  /** Ids supplied from outside that joined it, and groups merged into it, come with the newest occurrences. */
  readonly occurrences: readonly Occurrence[];
  /** Why its failures are together, in sentences. */
  readonly why: readonly string[];
}

/** A merge or a split that a person decided, for failures to come. */
export interface GroupRuleInfo {
  readonly id: string;
  /** Null: it cannot be read; `why` says so. */
  readonly kind: "merge" | "split" | null;
  readonly topic: string;
  readonly errorCode: string;
  readonly templates: readonly string[];
  readonly words: readonly string[];
  readonly reason: string;
  readonly version: number;
  readonly actor: string;
  readonly at: Date;
  /** False: unreadable, or past the limit of rules. */
  readonly used: boolean;
}

export interface CandidateInGroup {
  readonly candidate: Candidate;
  readonly group: Group;
}

export interface CandidateDetail {
  readonly candidate: Candidate;
  readonly group: Group;
  /** The newest occurrences: what was known. */
  readonly inputs: readonly Occurrence[];
  readonly action: ActionInfo | null;
  /** Approvals still needed before it may be executed; 0: none. */
  readonly approvalsMissing: number;
  /** Set when what was approved no longer stands: the group changed or grew since, or it was too long ago. */
  readonly lapsed: boolean;
  /** Which of these, in words. */
  readonly lapsedReason: string | null;
  /** What an execution would touch now. */
  readonly blastRadius: RedrivePreview;
  readonly provenance: readonly Provenance[] | null;
}

export interface Versioned extends Actor {
  /** Refused when the candidate has moved on since. */
  readonly version?: number | undefined;
  readonly reason?: string | null | undefined;
}

export interface CandidateUpdate extends Versioned {
  /** skipped, rolled_back, or what became of an unknown one: succeeded or failed. Anything else is refused. */
  readonly executionStatus?: string | undefined;
  readonly selectedAction?: string | undefined;
  readonly owner?: string | null | undefined;
  readonly note?: string | null | undefined;
}

/** `afterRepair`: what was repaired before, in words; what heals then is not credited to the action alone. */
export interface AfterRepair {
  readonly afterRepair?: string | null | undefined;
}

export interface ExecuteOptions extends Versioned, AfterRepair {
  /** In place of the action's own: canary, rate, … */
  readonly redrive?: ExecutionRequest | undefined;
}

export interface Recovery {
  ingest(report: FailureReport, actor: Actor): Promise<IngestAnswer>;
  evaluate(request: EvaluateRequest): Promise<EvaluateAnswer>;

  groups(filter: GroupFilter): Promise<Paged<Group>>;
  group(groupId: number): Promise<GroupDetail>;
  occurrences(
    groupId: number,
    page: {
      readonly limit: number;
      readonly cursor?: string | undefined;
      readonly open?: boolean | undefined;
      readonly tenantId?: string | undefined;
    },
  ): Promise<Paged<Occurrence>>;
  /** `from` join `into`; a rule for the future is kept with it. */
  merge(into: number, from: readonly number[], why: string, actor: Actor): Promise<Group>;
  /** What fits the group's template and contains all these words becomes a group of its own. */
  split(groupId: number, words: readonly string[], why: string, actor: Actor): Promise<{ group: Group; moved: number }>;
  groupRules(): Promise<GroupRuleInfo[]>;
  /**
   * From now on a split takes nothing more. Groups that were merged stay merged: a split parts them. What was counted stays.
   * `from`: its version; null: any.
   */
  deleteGroupRule(id: string, from: number | null, actor: Actor): Promise<void>;
  /** Asks for a fresh suggestion: opens the next round where the last one is closed. */
  suggest(groupId: number, actor: Actor): Promise<Candidate>;

  candidates(filter: CandidateFilter): Promise<Paged<CandidateInGroup>>;
  candidate(candidateId: number, options?: { readonly provenance?: boolean | undefined }): Promise<CandidateDetail>;
  update(candidateId: number, update: CandidateUpdate): Promise<Candidate>;
  approve(candidateId: number, by: Versioned): Promise<Candidate>;
  reject(candidateId: number, by: Versioned): Promise<Candidate>;
  execute(candidateId: number, options: ExecuteOptions): Promise<Candidate>;

  actions(filter?: { readonly actionType?: string | undefined }): Promise<ActionInfo[]>;
  register(action: RecoveryAction): void;
  /** Its settings as JSON (enabled, approval, risk, priority, template; absent members stay as shipped), as `putRule` does. */
  putAction(code: string, text: string, from: number, actor: Actor): Promise<ActionInfo>;

  rules(): Promise<Rule[]>;
  /** `from`: the version it was edited from, 0 for a new one. `text` is JSON; every fault is in `detail.errors`. */
  putRule(id: string, text: string, from: number, actor: Actor): Promise<Rule>;
  deleteRule(id: string, from: number, actor: Actor): Promise<void>;
  ruleHistory(id: string): Promise<StoredDocument[]>;

  /** With `dryRun` the list is frozen and shown, and waits for `resumeRedrive`. */
  startRedrive(request: RedriveRequest, actor: Actor): Promise<{ readonly redrive: Redrive; readonly created: boolean }>;
  redrives(filter: {
    readonly status?: RedriveStatus | undefined;
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<Paged<Redrive>>;
  redrive(id: string): Promise<Redrive>;
  redriveItems(
    id: string,
    page: { readonly state?: RedriveItem["state"] | undefined; readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Paged<RedriveItem>>;
  pauseRedrive(id: string, by: Versioned): Promise<Redrive>;
  resumeRedrive(id: string, by: Versioned & AfterRepair): Promise<Redrive>;
  cancelRedrive(id: string, by: Versioned): Promise<Redrive>;
  /** A dead letter again with another payload, checked against its schema; the original is kept, resolved. */
  edit(
    messageId: string,
    edit: {
      readonly payload: string;
      readonly key?: string | null | undefined;
      readonly revision?: number | undefined;
      readonly reason: string;
      readonly force?: boolean | undefined;
    } & Actor,
  ): Promise<MessageView>;
  origin(messageId: string): Promise<MessageOrigin | null>;

  provenance(
    of: { readonly groupId?: number; readonly candidateId?: number; readonly redriveId?: string },
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Paged<Provenance>>;
  stats(): Promise<RecoveryStats>;
  /** Returns a function that takes it off again. */
  on<N extends HookName>(name: N, hook: RecoveryHooks[N], options?: HookOptions): () => void;
}
