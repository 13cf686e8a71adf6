/**
 * The evaluation of one candidate: claimed (unevaluated → evaluating), evaluated, and written with its record in one write under
 * the version that was read. Delivered twice it is done once.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Group } from "../groups/group.ts";
import { existingGroup } from "../groups/read.ts";
import { line, type NewProvenance, SYSTEM } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import { evaluationToJson } from "../rules/evaluation-json.ts";
import { type AutoExecutionRecord, autoExecutionOf, keptOf, toTry } from "./auto-execution.ts";
import { type Candidate, lineOf } from "./candidate.ts";
import { type EvaluationStatus, isEvaluable } from "./candidate-state.ts";
import { wasCancelled } from "./ending.ts";
import { type EvaluatedFailure, evaluateFailure, failureOf } from "./evaluate-failure.ts";
import { blastRadiusOf, type CandidateDeps, find } from "./found.ts";

/** I10: how often it is evaluated anew because the candidate was written meanwhile. */
const ROUNDS_MAX = 5;
const ALTERNATIVES_MAX = 5;
const CANCELLED: AutoExecutionRecord = { allowed: false, refusals: ["cancelled_before"] };

/** The candidate as it is then, whether this call did it or not. Throws `candidate_not_found`; anything else may be tried again. */
export async function evaluateCandidate(deps: CandidateDeps, candidateId: number): Promise<Candidate> {
  const { hooks, clock } = deps;
  const startedMs = clock.monotonicMs();
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { candidate, group } = await find(deps, candidateId);
    const { evaluationStatus, evaluatedAt } = candidate;
    if (!isEvaluable(candidate)) {
      // Decided about or executed meanwhile: what was evaluated before stands, and nothing is under way any more.
      const to = evaluatedAt === null ? "unevaluated" : "evaluated";
      const rests = evaluationStatus === to || evaluationStatus === "failed" ? candidate : await moved(deps, candidate, to);
      if (rests === null) continue;
      return rests;
    }
    if (evaluationStatus === "evaluated") return candidate;
    const claimed = evaluationStatus === "evaluating" ? candidate : await moved(deps, candidate, "evaluating");
    if (claimed === null) continue;
    if (round === 0) await hooks.tell("on_evaluation_start", { candidate: claimed, group });
    const result = await evaluated(deps, claimed, group);
    const written = await write(deps, claimed, group, result, startedMs);
    if (written.kind !== "done") continue;
    const about = { candidate: written.candidate, group };
    const { evaluation } = result;
    await hooks.tell("on_suggestion_generated", { ...about, evaluation });
    const { recommended, confidence } = evaluation;
    // Where a person's choice stands, nothing else was selected.
    if (recommended && recommended.action === about.candidate.selectedAction)
      await hooks.tell("on_action_selected", { ...about, action: recommended.action, confidence });
    return about.candidate;
  }
  const text = `Candidate ${candidateId} changed ${ROUNDS_MAX} times while it was being evaluated: it is tried again.`;
  throw new MakegoodError("version_conflict", text, { candidateId });
}

/** After the last try: the candidate says that its evaluation failed, and why. */
export async function failEvaluation(deps: CandidateDeps, candidateId: number, reason: string): Promise<void> {
  const { candidate } = await find(deps, candidateId);
  const { evaluationStatus, groupId } = candidate;
  if (evaluationStatus !== "evaluating" && evaluationStatus !== "unevaluated") return;
  await moved(deps, candidate, "failed", [line("evaluation_failed", SYSTEM, { candidateId, groupId, reason })]);
}

/** A person asks: opens the next round where the last one is closed, and evaluates it now. */
export async function suggest(deps: CandidateDeps, groupId: number, actor: Actor): Promise<Candidate> {
  const { recovery, prepare, ids } = deps;
  await existingGroup(recovery, groupId);
  await prepare();
  const asked = await recovery.reopen(groupId, { ids, asked: true }, [line("suggestion_asked", actor, { groupId })]);
  if (asked === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
  // At once, because the person waits for it; the message that was queued with it finds it done.
  return evaluateCandidate(deps, asked.candidateId);
}

/** Null: another wrote to it meanwhile. Appendix E: what was asked for and not begun ends by way of evaluating. */
async function moved(
  deps: CandidateDeps,
  candidate: Candidate,
  evaluationStatus: EvaluationStatus,
  provenance: NewProvenance[] = [],
): Promise<Candidate | null> {
  const begins = candidate.evaluationStatus === "unevaluated" && evaluationStatus !== "evaluating";
  const from = begins ? await moved(deps, candidate, "evaluating") : candidate;
  if (from === null) return null;
  const { candidateId, version } = from;
  const written = await deps.recovery.write({ candidateId, version, patch: { evaluationStatus }, provenance });
  return written.kind === "done" ? written.candidate : null;
}

async function evaluated(deps: CandidateDeps, { candidateId }: Candidate, group: Group): Promise<EvaluatedFailure> {
  const { recovery, events, settings } = deps;
  const result = await evaluateFailure(deps, await failureOf(recovery, group), group);
  await recovery.setCause(group.groupId, result.evaluation.cause.cause);
  if (settings.ruleDebug) {
    const rules = result.evaluation.rulesEvaluated.map(({ ruleId, ...rest }) => ({ rule: ruleId, ...rest }));
    events.emit({ type: "lifecycle", what: "recovery_rules", detail: { candidateId, rules } });
  }
  return result;
}

async function cancelledBefore({ recovery }: CandidateDeps, { groupId, round, candidateId }: Candidate): Promise<boolean> {
  if (round === 1) return false;
  const { data } = await recovery.candidates({ groupId, current: false, limit: 2 });
  return data.some((one) => one.candidateId !== candidateId && wasCancelled(one));
}

async function write(
  deps: CandidateDeps,
  before: Candidate,
  group: Group,
  { evaluation, action, actions }: EvaluatedFailure,
  startedMs: number,
) {
  const { recovery, settings, clock, random } = deps;
  const { candidateId, groupId, version, selectedAction } = before;
  const { recommended } = evaluation;
  const chooser = selectedAction === null ? undefined : keptOf(before).selected_by;
  const chosen = chooser === undefined ? (recommended?.action ?? null) : selectedAction;
  const ranked = evaluation.ranked.find((each) => each.action === chosen);
  const confidence = chooser === undefined ? evaluation.confidence : (ranked?.confidence ?? 0);
  // It only asks whether there are more than may run without a person.
  const blastRadius = await blastRadiusOf(recovery, groupId, { limit: settings.autoMessagesMax + 1 });
  // What a person chose instead is theirs to execute.
  const asked = { settings, action: chooser === undefined ? action : null, confidence, group, blastRadius };
  const gates = autoExecutionOf(asked, (suggested) => toTry(evaluation.ranked, suggested, actions, random));
  const auto = gates.allowed && (await cancelledBefore(deps, before)) ? CANCELLED : gates;
  const occurrences = group.occurrenceCount;
  const matched = evaluation.rulesEvaluated.filter((rule) => rule.matched).map(({ ruleId }) => ruleId);
  const durationMs = clock.monotonicMs() - startedMs;
  const said = { candidateId, groupId, confidenceBefore: before.confidence, confidenceAfter: confidence, durationMs };
  const details = { matched, auto_execution: auto, occurrences };
  const provenance = [line("rule_evaluated", SYSTEM, { ...said, ruleId: matched[0], details })];
  if (chosen !== null && chosen !== selectedAction) {
    const reason = selectedAction === null ? null : `${selectedAction} was suggested before`;
    provenance.push(line("action_selected", SYSTEM, { ...said, reason, action: chosen, ruleId: recommended?.rules[0] }));
  }
  // An approval of another action, or of the group as it was before, does not count for this one.
  const clearApprovals = before.approvals.length > 0 && (chosen !== selectedAction || before.groupVersion !== group.version);
  if (clearApprovals) {
    const reason = chosen === selectedAction ? "the group changed" : "another action is suggested now";
    provenance.push(lineOf(before, "approval_lapsed", { ...SYSTEM, reason }));
  }
  const json = evaluationToJson({ ...evaluation, alternatives: evaluation.alternatives.slice(0, ALTERNATIVES_MAX) });
  return recovery.write({
    candidateId,
    version,
    patch: {
      evaluationStatus: "evaluated",
      evaluated: true,
      selectedAction: chosen,
      confidence,
      evaluation: JSON.stringify({ ...json, occurrences, auto_execution: auto, selected_by: chooser }),
      groupVersion: group.version,
      clearApprovals,
    },
    provenance,
  });
}
