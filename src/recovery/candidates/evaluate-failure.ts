/** What should be done about a failure, by the rules in use, what became of earlier actions, and the catalogue. Writes nothing. */
import { isTopicName } from "../../message/validate.ts";
import { appliesTo, refusalOf } from "../actions/applies.ts";
import type { CatalogueAction } from "../actions/catalogue.ts";
import { causeOf } from "../causes/cause-of.ts";
import { isSelectable } from "../confidence/gates.ts";
import { evidenceOf, repairNotes } from "../confidence/levels.ts";
import { cleanName, cleanText } from "../failures/clean-text.ts";
import { OUTSIDE_TOPIC, sinkName } from "../failures/incoming.ts";
import { mask } from "../fingerprint/mask.ts";
import type { Group } from "../groups/group.ts";
import type { Records } from "../records.ts";
import type { EvaluateRequest } from "../recovery.ts";
import { type Evaluation, evaluate } from "../rules/evaluate.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import type { Candidate } from "./candidate.ts";
import type { CandidateDeps } from "./found.ts";

type FailureFacts = Awaited<ReturnType<typeof failureOf>> & { readonly httpStatus?: number | undefined };
/** With the recommended action, and those of the catalogue that fit. */
export type EvaluatedFailure = Awaited<ReturnType<typeof evaluateFailure>>;

/** `group`: the one it belongs to; null: it would be a new one, of which nothing is known. `rules`: instead of those in use. */
export async function evaluateFailure(deps: CandidateDeps, failure: FailureFacts, group: Group | null, rules?: RuleSet) {
  const { recovery, topics, clock } = deps;
  const { minConfidence } = deps.settings;
  const set = rules ?? (await deps.ruleBook.set());
  const { stackTrace, skillId, ...facts } = failure;
  const about = { groupId: group?.groupId ?? null, cause: (set.causes ?? causeOf)(failure).cause };
  const at = clock.wallMs();
  const outcomes = evidenceOf(await recovery.observations(about.groupId), about, at);
  const more = { stackTrace: stackTrace ?? "", skillId: skillId ?? "" };
  const actions = (await deps.catalogue.all()).filter((each) => appliesTo(each, failure));
  const evaluation = fitting(evaluate(set, { ...facts, ...more, outcomes, at }, minConfidence), actions, minConfidence);
  const action = actions.find(({ actionCode }) => actionCode === evaluation.recommended?.action) ?? null;
  const [through] = group && group.openReports > 0 ? (await recovery.openReports(group.groupId, 1)).topics : [];
  const refusal = group && action && refusalOf(action, { group, topic: await topics.get(through?.topic ?? failure.topic) });
  // It is still suggested: a person can give it what it lacks.
  const refused = refusal ? [`${action?.actionCode} cannot be done now: ${refusal}`] : [];
  return {
    evaluation: { ...evaluation, notes: [...evaluation.notes, ...repairNotes(outcomes), ...refused] },
    action,
    actions,
  };
}

/** Without the actions that say of themselves that they do not fit this code or topic. */
function fitting(evaluation: Evaluation, actions: readonly CatalogueAction[], minConfidence: number): Evaluation {
  const fits = new Set(actions.map(({ actionCode }) => actionCode));
  const given = [...(evaluation.recommended ? [evaluation.recommended] : []), ...evaluation.alternatives];
  const left = given.filter(({ action }) => fits.has(action));
  if (left.length === given.length) return evaluation;
  const recommended = left.find((each) => isSelectable(each.confidence, minConfidence));
  const out = given.filter(({ action }) => !fits.has(action)).map(({ action }) => action);
  return {
    ...evaluation,
    recommended,
    confidence: recommended?.confidence ?? 0,
    alternatives: left.filter((each) => each !== recommended),
    notes: [...evaluation.notes, `left out, because they do not apply to this code or topic: ${out.join(", ")}`],
  };
}

/** The failure that a group stands for: its newest. */
export async function failureOf({ occurrences }: Pick<Records, "occurrences">, group: Group) {
  const { errorCode, topic, template, occurrenceCount } = group;
  const [newest] = (await occurrences(group.groupId, { limit: 1 })).data;
  const { errorMessage = template, stackTrace = null, skillId = null } = newest ?? {};
  return { errorCode, topic, occurrenceCount, errorMessage, stackTrace, skillId };
}

/** How sure a candidate's action is by now. For the record of an execution, so that it says what it taught. */
export async function confidenceNow(deps: CandidateDeps, { groupId, selectedAction, evaluation }: Candidate) {
  const group = selectedAction === null || evaluation === null ? null : await deps.recovery.group(groupId);
  if (group === null) return null;
  const { ranked } = (await evaluateFailure(deps, await failureOf(deps.recovery, group), group)).evaluation;
  return ranked.find(({ action }) => action === selectedAction)?.confidence ?? null;
}

/** A question about a failure that need not have happened: nothing is learned from it. */
export async function evaluateRequest(deps: CandidateDeps, request: EvaluateRequest) {
  const { recovery, topics, places, clock } = deps;
  const startedMs = clock.monotonicMs();
  const stackTrace = request.stackTrace === undefined ? null : cleanText(request.stackTrace);
  const topic = cleanName(request.topic ?? "") || OUTSIDE_TOPIC;
  const ours = request.sink === undefined && isTopicName(topic) ? await topics.get(topic) : null;
  const failure = {
    topic,
    sink: ours === null ? mask(cleanName(request.sink ?? "")) : sinkName(ours),
    errorCode: cleanName(request.errorCode) || "unknown",
    errorMessage: cleanText(request.errorMessage ?? ""),
  };
  const place = await places.look({ ...failure, ...(stackTrace === null ? {} : { stackTrace }) });
  const { fingerprint, template } = place;
  const failureMatchId = request.failureMatchId?.toLowerCase();
  const known = failureMatchId === undefined ? null : await recovery.groupOf({ failureMatchId });
  const group = known ?? (await recovery.groupOf({ fingerprint }));
  const { skillId = null, httpStatus, occurrenceCount = group === null ? 1 : group.occurrenceCount + 1 } = request;
  const { evaluation } = await evaluateFailure(deps, { ...failure, stackTrace, skillId, occurrenceCount, httpStatus }, group);
  return {
    evaluation,
    fingerprint,
    failureMatchId: failureMatchId ?? place.failureMatchId,
    template,
    /** The one it would join; null: it would be a new one. */
    groupId: group?.groupId ?? null,
    durationMs: clock.monotonicMs() - startedMs,
  };
}
