/**
 * Whether a suggestion may run without a person, and why not: pure gates over what was looked up. The rate is not asked
 * here but by the claim itself, where it is counted together with all others.
 */

import type { Random } from "../../platform/random.ts";
import { approvalsNeeded } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import { actionToTry } from "../confidence/explore.ts";
import { type AutoExecutionRefusal, autoExecutionRefusals } from "../confidence/gates.ts";
import type { Ranked } from "../confidence/rank.ts";
import { OVERFLOW } from "../fingerprint/learner.ts";
import type { Group } from "../groups/group.ts";
import type { RedrivePreview } from "../redrive/redrive.ts";
import type { RecoverySettings } from "../settings.ts";
import { isRecoveryTopic } from "../topics.ts";

export interface AutoExecutionRecord {
  readonly allowed: boolean;
  readonly refusals: readonly (AutoExecutionRefusal | "no_action" | "cancelled_before")[];
  /** Another action, to be tried instead where the budget for that allows it. */
  readonly explore?: string;
}

/** The action that a run without a person would learn most from, among those that may run so at all (R13). */
export function toTry(ranked: readonly Ranked[], suggested: string, actions: readonly CatalogueAction[], random: Random): string {
  const may = new Set(actions.filter(runsByItself).map(({ actionCode }) => actionCode));
  return actionToTry(
    ranked,
    suggested,
    (action) => may.has(action),
    () => random.next(),
  );
}

const runsByItself = (action: CatalogueAction): boolean =>
  action.isActive && action.isAutomated && action.risk === "safe" && approvalsNeeded(action) === 0;

interface Asked {
  readonly settings: Pick<RecoverySettings, "autoExecute" | "autoMessagesMax">;
  readonly action: CatalogueAction | null;
  readonly confidence: number;
  readonly group: Group;
  readonly blastRadius: RedrivePreview;
}

export function autoExecutionOf(given: Asked, tried: (suggested: string) => string): AutoExecutionRecord {
  const { settings, action, confidence, group, blastRadius } = given;
  if (action === null) return { allowed: false, refusals: ["no_action"] };
  const refusals = autoExecutionRefusals({
    enabled: settings.autoExecute,
    confidence,
    automated: action.isAutomated,
    safe: action.risk === "safe",
    needsApproval: approvalsNeeded(action) > 0,
    insideBudget: blastRadius.messages <= settings.autoMessagesMax,
    insideRate: true,
    ofRecovery: isRecoveryTopic(group.topic) || blastRadius.topics.some(({ topic }) => isRecoveryTopic(topic)),
    ofOverflow: group.template === OVERFLOW,
    held: group.heldBy !== null,
  });
  if (refusals.length > 0) return { allowed: false, refusals };
  const explore = tried(action.actionCode);
  return { allowed: true, refusals, ...(explore !== action.actionCode && { explore }) };
}
