/**
 * Whether a suggestion may run without a person, and why not: pure gates over what was looked up. The rate is not asked
 * here but by the claim itself, where it is counted together with all others.
 */

import { approvalsNeeded } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import { type AutoExecutionRefusal, autoExecutionRefusals } from "../confidence/gates.ts";
import { OVERFLOW } from "../fingerprint/learner.ts";
import type { Group } from "../groups/group.ts";
import type { RedrivePreview } from "../redrive/redrive.ts";
import type { RecoverySettings } from "../settings.ts";
import { isRecoveryTopic } from "../topics.ts";

export interface AutoExecutionRecord {
  readonly allowed: boolean;
  readonly refusals: readonly (AutoExecutionRefusal | "no_action" | "cancelled_before")[];
}

export function autoExecutionOf(given: {
  readonly settings: Pick<RecoverySettings, "autoExecute" | "autoMessagesMax">;
  readonly action: CatalogueAction | null;
  readonly confidence: number;
  readonly group: Group;
  readonly blastRadius: RedrivePreview;
}): AutoExecutionRecord {
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
  return { allowed: refusals.length === 0, refusals };
}
