/**
 * What an action is: what it does to messages, how risky that is, who must agree. An action plans; the engine carries the plan out under
 * a fence. What an action is worth is learned from what becomes of the messages it touched, never from the call's own answer.
 */
import type { TopicRecord } from "../../message/topic.ts";
import type { Candidate } from "../candidates/candidate.ts";
import type { Group } from "../groups/group.ts";
import type { RedriveMode, RedrivePreview } from "../redrive/redrive.ts";
import type { CatalogueAction } from "./catalogue.ts";
import type { TemplateValues } from "./settings.ts";

export interface ActionContext {
  readonly candidate: Candidate;
  readonly group: Group;
  /** The group's topic; null for failures of other services. */
  readonly topic: TopicRecord | null;
  readonly blastRadius: RedrivePreview;
  /** The action's template as it is set now; texts still have their `{name}`s. */
  readonly template: TemplateValues;
  readonly actor: string;
  readonly reason: string | null;
  /** The fence of this execution; also the key of what an action of your own does outside. */
  readonly executionId: string;
  readonly signal: AbortSignal;
}

/** What to do. All of it is one write, except `run`, which may do anything and is why a crash can leave an unknown outcome. */
export interface ActionPlan {
  /** What is done to the group's open dead letters; absent: they are only watched. */
  readonly mode?: RedriveMode | undefined;
  /** copy: which of the topic's other sinks carries the effect. */
  readonly carrier?: "fallback" | "compensation" | undefined;
  /** To send with the execution; their keys are made from the execution, so each is sent once. */
  readonly messages?: readonly { readonly topic: string; readonly payload: string }[] | undefined;
  /** Kept with each message that is touched; absent: the reason that was given for the execution. */
  readonly reason?: string | undefined;
  /** Opens the breaker of every topic whose messages are touched, before anything is sent. */
  readonly openBreaker?: boolean | undefined;
  /** Nothing is sent before so long; who executes may ask for another delay. */
  readonly delayMs?: number | undefined;
  /** Holds the group for a person. */
  readonly hold?: { readonly owner: string; readonly note: string } | undefined;
  /** Anything else, in code. Runs once; its answer goes into the execution's result. */
  readonly run?: ((context: ActionContext) => Promise<unknown>) | undefined;
}

export interface RecoveryAction {
  readonly actionCode: string;
  readonly name: string;
  readonly actionType: "retry" | "fallback" | "escalate" | "notify" | "reconfigure" | "rollback" | "manual" | "skip";
  /** 0 to 1,000; higher is suggested first where nothing else tells. */
  readonly priority: number;
  readonly risk: "safe" | "risky" | "forbidden";
  /** How many different people must approve. */
  readonly approval: "none" | "one" | "two";
  /** A program can carry it out without a person. */
  readonly isAutomated: boolean;
  /** Empty: any. */
  readonly appliesToErrorCodes: readonly string[];
  readonly appliesToTopics: readonly string[];
  /** Settings and texts; `{name}` stands for a field of the group. No expressions: an unknown name is refused when saved. */
  readonly template: TemplateValues;
  /** What undoes it; null: nothing does. What was delivered or resolved stays so. */
  readonly inverse: "close_breaker" | "release" | null;
  /** Why it cannot be done here; null: it can. Asked for each topic that messages of the group are in (`group.topic` names it). */
  readonly refusal?: ((context: Pick<ActionContext, "group" | "topic">) => string | null) | undefined;
  readonly plan: (context: ActionContext) => ActionPlan;
}

/** An action as it is shown: with what is known about it. */
export interface ActionInfo extends Omit<CatalogueAction, "plan" | "refusal"> {
  /** Executions over all groups, each worth 1 and less the older it is; those after a repair are left out. */
  readonly successes: number;
  readonly failures: number;
}
