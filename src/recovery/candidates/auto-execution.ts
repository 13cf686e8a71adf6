/** Whether a suggestion may run without a person, and what is kept of that, and of what a person chose instead, with its evaluation. */
import type { Random } from "../../platform/random.ts";
import { approvalsNeeded } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import { actionToTry } from "../confidence/explore.ts";
import { CONFIDENCE_GATES } from "../confidence/gates.ts";
import type { Ranked } from "../confidence/rank.ts";
import { OVERFLOW } from "../fingerprint/learner.ts";
import type { Group } from "../groups/group.ts";
import type { RedrivePreview } from "../redrive/redrive.ts";
import type { EvaluationJson } from "../rules/evaluation-json.ts";
import type { RecoverySettings } from "../settings.ts";
import { isRecoveryTopic } from "../topics.ts";
import type { Candidate } from "./candidate.ts";

export interface AutoExecutionRecord {
  readonly allowed: boolean;
  readonly refusals: readonly string[];
  /** Another action, to be tried instead where the budget for that allows it. */
  readonly explore?: string;
}

/** What was allowed was the suggestion: an evaluation that is delivered later must not run another action in its place. */
const NO_ACTION: AutoExecutionRecord = { allowed: false, refusals: ["no_action"] };

interface KeptEvaluation extends EvaluationJson {
  readonly auto_execution: AutoExecutionRecord;
  /** Who chose the action; absent: the engine did. The next evaluation leaves their choice alone. */
  readonly selected_by?: string;
}

export const keptOf = ({ evaluation }: Candidate) => JSON.parse(evaluation ?? "{}") as Partial<KeptEvaluation>;

export function exploredBy(candidate: Candidate, suggested: string | null): string {
  return JSON.stringify({ ...keptOf(candidate), explored: { instead_of: suggested } });
}

export function chosenBy(candidate: Candidate, action: string, actor: string) {
  const kept = keptOf(candidate);
  const { recommended, alternatives = [] } = kept;
  const said = [...(recommended ? [recommended] : []), ...alternatives].find((each) => each.action === action);
  const evaluation = JSON.stringify({ ...kept, auto_execution: NO_ACTION, selected_by: actor });
  return { evaluation, confidence: said?.confidence ?? null };
}

/** The action that a run without a person would learn most from, among those that may run so at all (R13). */
export function toTry(ranked: readonly Ranked[], suggested: string, actions: readonly CatalogueAction[], random: Random): string {
  const safe = actions.filter(({ isActive, isAutomated, risk }) => isActive && isAutomated && risk === "safe");
  const may = new Set(safe.filter((each) => approvalsNeeded(each) === 0).map(({ actionCode }) => actionCode));
  const mayTry = (action: string) => may.has(action);
  return actionToTry(ranked, suggested, mayTry, () => random.next());
}

interface Asked {
  readonly settings: Pick<RecoverySettings, "autoExecute" | "autoMessagesMax">;
  readonly action: CatalogueAction | null;
  readonly confidence: number;
  readonly group: Pick<Group, "topic" | "template" | "heldBy">;
  readonly blastRadius: Pick<RedrivePreview, "messages" | "topics">;
}

export function autoExecutionOf(given: Asked, tried: (suggested: string) => string): AutoExecutionRecord {
  const { settings, action, confidence, group, blastRadius } = given;
  if (action === null) return NO_ACTION;
  // The claim itself asks for the rate, where it is counted together with all others.
  const against = {
    disabled: !settings.autoExecute,
    // Written so that a confidence that is no number is refused.
    low_confidence: !(confidence >= CONFIDENCE_GATES.autoExecute),
    not_automated: !action.isAutomated,
    not_safe: action.risk !== "safe",
    needs_approval: approvalsNeeded(action) > 0,
    over_budget: blastRadius.messages > settings.autoMessagesMax,
    recovery_of_recovery: isRecoveryTopic(group.topic) || blastRadius.topics.some(({ topic }) => isRecoveryTopic(topic)),
    // It holds what fits no template: different failures, so no action fits them (decision 0017).
    overflow_group: group.template === OVERFLOW,
    held_group: group.heldBy !== null,
  };
  const refusals = Object.entries(against).flatMap(([reason, holds]) => (holds ? [reason] : []));
  if (refusals.length > 0) return { allowed: false, refusals };
  const explore = tried(action.actionCode);
  return { allowed: true, refusals, ...(explore !== action.actionCode && { explore }) };
}
