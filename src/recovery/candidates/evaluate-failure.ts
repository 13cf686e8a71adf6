/**
 * What should be done about a failure: the rules in use, what became of earlier actions, and the catalogue, in one answer. Writes
 * nothing; a candidate's evaluation and a mere question get the same answer.
 */
import type { Clock } from "../../platform/clock.ts";
import type { TopicStore } from "../../store/topics.ts";
import { appliesTo, refusalOf } from "../actions/applies.ts";
import type { Catalogue, CatalogueAction } from "../actions/catalogue.ts";
import { causeOf } from "../causes/cause-of.ts";
import { isSelectable } from "../confidence/gates.ts";
import { evidenceOf, repairNotes } from "../confidence/levels.ts";
import type { Group } from "../groups/group.ts";
import type { Records } from "../records.ts";
import { type Evaluation, evaluate } from "../rules/evaluate.ts";
import type { RuleBook } from "../rules/rule-documents.ts";
import type { RuleSet } from "../rules/rule-set.ts";

export interface FailureFacts {
  readonly errorCode: string;
  readonly errorMessage: string;
  readonly stackTrace: string | null;
  readonly httpStatus?: number | undefined;
  readonly topic: string;
  readonly skillId: string | null;
  readonly occurrenceCount: number;
}

export interface EvaluatedFailure {
  readonly evaluation: Evaluation;
  /** The recommended action; null without one. */
  readonly action: CatalogueAction | null;
  /** The catalogue, those that fit. */
  readonly actions: readonly CatalogueAction[];
}

export interface EvaluateFailureDeps {
  readonly recovery: Pick<Records, "observations" | "openReports">;
  readonly topics: Pick<TopicStore, "get">;
  readonly ruleBook: Pick<RuleBook, "set">;
  readonly catalogue: Pick<Catalogue, "all">;
  readonly clock: Clock;
  readonly minConfidence: number;
}

/** `group`: the one it belongs to; null: it would be a new one, of which nothing is known. `rules`: instead of those in use. */
export type EvaluateFailure = (failure: FailureFacts, group: Group | null, rules?: RuleSet) => Promise<EvaluatedFailure>;

/** The failure that a group stands for: its newest. */
export async function failureOf(recovery: Pick<Records, "occurrences">, group: Group): Promise<FailureFacts> {
  const { errorCode, topic, template, occurrenceCount } = group;
  const [newest] = (await recovery.occurrences(group.groupId, { limit: 1 })).data;
  const { errorMessage = template, stackTrace = null, skillId = null } = newest ?? {};
  return { errorCode, topic, occurrenceCount, errorMessage, stackTrace, skillId };
}

export function createEvaluateFailure(deps: EvaluateFailureDeps): EvaluateFailure {
  const { recovery, topics, ruleBook, catalogue, clock, minConfidence } = deps;
  return async (failure, group, rules) => {
    const set = rules ?? (await ruleBook.set());
    const { errorCode, errorMessage, stackTrace, httpStatus, topic, skillId, occurrenceCount } = failure;
    const about = { groupId: group?.groupId ?? null, cause: (set.causes ?? causeOf)(failure).cause };
    const at = clock.wallMs();
    const outcomes = evidenceOf(await recovery.observations(about.groupId), about, at);
    const input = { errorCode, errorMessage, httpStatus, topic, occurrenceCount, outcomes, at };
    const more = { ...(stackTrace === null ? {} : { stackTrace }), ...(skillId === null ? {} : { skillId }) };
    const actions = new Map((await catalogue.all()).map((action) => [action.actionCode, action]));
    const evaluation = fitting(evaluate(set, { ...input, ...more }, minConfidence), actions, failure, minConfidence);
    const fits = [...actions.values()].filter((each) => appliesTo(each, failure));
    const action = actions.get(evaluation.recommended?.action ?? "") ?? null;
    const [through] = group && group.openReports > 0 ? (await recovery.openReports(group.groupId, 1)).topics : [];
    const refusal = group && action && refusalOf(action, { group, topic: await topics.get(through?.topic ?? topic) });
    // It is still suggested: a person can give it what it lacks.
    const refused = refusal ? [`${action?.actionCode} cannot be done now: ${refusal}`] : [];
    return {
      evaluation: { ...evaluation, notes: [...evaluation.notes, ...repairNotes(outcomes), ...refused] },
      action,
      actions: fits,
    };
  };
}

/** Without the actions that say of themselves that they do not fit this code or topic. */
function fitting(
  evaluation: Evaluation,
  actions: ReadonlyMap<string, CatalogueAction>,
  failure: FailureFacts,
  minConfidence: number,
): Evaluation {
  const fits = (code: string): boolean => {
    const action = actions.get(code);
    return action !== undefined && appliesTo(action, failure);
  };
  const given = [...(evaluation.recommended ? [evaluation.recommended] : []), ...evaluation.alternatives];
  const left = given.filter(({ action }) => fits(action));
  if (left.length === given.length) return evaluation;
  const recommended = left.find((each) => isSelectable(each.confidence, minConfidence));
  const out = given.filter(({ action }) => !fits(action)).map(({ action }) => action);
  return {
    ...evaluation,
    recommended,
    confidence: recommended?.confidence ?? 0,
    alternatives: left.filter((each) => each !== recommended),
    notes: [...evaluation.notes, `left out, because they do not apply to this code or topic: ${out.join(", ")}`],
  };
}
