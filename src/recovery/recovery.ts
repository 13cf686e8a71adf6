/** What is given to the operations of the recovery engine. A refusal is thrown as a MakegoodError whose code and text say what to do. */
import type { Candidate } from "./candidates/candidate.ts";
import type { createRecovery } from "./engine.ts";
import type { Group } from "./groups/group.ts";
import type { ActorType } from "./provenance.ts";
import type { ExecutionRequest } from "./redrive/request.ts";

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
  /** Of the program that failed. */
  readonly version?: string | null | undefined;
  /** A topic of ours: the failure payload can be sent again through it. */
  readonly redriveTopic?: string | null | undefined;
}

export interface EvaluateRequest {
  /** Known already: its group, whatever the fingerprint says. */
  readonly failureMatchId?: string | undefined;
  readonly errorCode: string;
  readonly errorMessage?: string | undefined;
  readonly stackTrace?: string | undefined;
  readonly httpStatus?: number | undefined;
  readonly topic?: string | undefined;
  readonly sink?: string | undefined;
  readonly skillId?: string | undefined;
  readonly occurrenceCount?: number | undefined;
}

export interface CandidateInGroup {
  readonly candidate: Candidate;
  readonly group: Group;
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

export interface ClaimRequest extends Versioned {
  readonly leaseMs?: number | undefined;
  /** Of the claim that is to run longer; absent: a new one. */
  readonly executionId?: string | undefined;
}

/** What became of an execution that was claimed. */
export interface OutcomeReport extends Actor {
  readonly executionId: string;
  readonly healed: number;
  readonly failed: number;
  readonly note?: string | null | undefined;
}

export interface ResolveRequest extends Actor {
  /** Failures of earlier versions do not bring it back; absent: every failure does. */
  readonly inVersion?: string | undefined;
  readonly reason: string;
  /** What becomes of its open dead letters; absent: they are left. */
  readonly messages?: "leave" | "resolve" | undefined;
}

/** What the server, the command line and a program may ask: the engine without what runs by itself. */
export type Recovery = Omit<ReturnType<typeof createRecovery>, "evaluateMessage" | "steps" | "jobs" | "start" | "stop">;
