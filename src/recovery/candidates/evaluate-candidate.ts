/** The evaluation of a candidate, and the execution that follows where everything speaks for it. Delivered twice it is done once. */
import { errorText, isMakegoodError, MakegoodError } from "../../message/errors.ts";
import { DELIVERED, type Outcome } from "../../message/outcome.ts";
import { retryPolicy } from "../../message/retry-policy.ts";
import type { Group } from "../groups/group.ts";
import { line, type NewProvenance, SYSTEM } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import { evaluationToJson } from "../rules/evaluation-json.ts";
import { EVALUATION_ATTEMPTS_MAX, RECOVERY_TOPIC } from "../topics.ts";
import { type AutoExecutionRecord, autoExecutionOf, keptOf, toTry } from "./auto-execution.ts";
import { type Candidate, lineOf } from "./candidate.ts";
import { type EvaluationStatus, isEvaluable } from "./candidate-state.ts";
import { type EvaluatedFailure, evaluateFailure, failureOf } from "./evaluate-failure.ts";
import { execute } from "./execute.ts";
import { wasCancelled } from "./execution-record.ts";
import { blastRadiusOf, type CandidateDeps, find } from "./found.ts";

/** I10: how often it is evaluated anew because the candidate was written meanwhile. */
const ROUNDS_MAX = 5;
const ALTERNATIVES_MAX = 5;
const DAY_MS = 24 * 3_600_000;
const CANCELLED: AutoExecutionRecord = { allowed: false, refusals: ["cancelled_before"] };

/** `attempt`: the number of this try, from 1. The seed's stream entries (fields as texts) are read as well as our own messages. */
export async function evaluateMessage(deps: CandidateDeps, payload: unknown, attempt: number): Promise<Outcome> {
  const candidateId = candidateIdOf(payload);
  if (candidateId === null) {
    const error = "the payload names no candidate: it needs candidate_id, a whole number";
    return { kind: "reject", code: "invalid_message", error };
  }
  try {
    await autoExecute(deps, await evaluateCandidate(deps, candidateId));
    return DELIVERED;
  } catch (thrown) {
    const code = isMakegoodError(thrown) ? thrown.code : "evaluation_failed";
    const error = errorText(thrown);
    if (code === "candidate_not_found") return { kind: "reject", code, error };
    // Read each time: an operator may have given the topic another policy.
    const topic = await deps.topics.get(RECOVERY_TOPIC);
    const attemptsMax = (topic && retryPolicy(topic.retry)?.attemptsMax) ?? EVALUATION_ATTEMPTS_MAX;
    if (attempt < attemptsMax) return { kind: "retry", code, error };
    const { candidate } = await find(deps, candidateId);
    const { groupId, evaluationStatus } = candidate;
    const said = [line("evaluation_failed", SYSTEM, { candidateId, groupId, reason: error })];
    if (evaluationStatus === "evaluating" || evaluationStatus === "unevaluated") await moved(deps, candidate, "failed", said);
    return { kind: "retry", code, error };
  }
}

/** The gates were asked with the evaluation and their answer is on record; the claim asks for the group, version and budget once more. */
async function autoExecute(deps: CandidateDeps, candidate: Candidate): Promise<void> {
  const { recovery, settings } = deps;
  const { candidateId, groupId, version, evaluationStatus, executionStatus, selectedAction } = candidate;
  if (!settings.autoExecute || executionStatus !== "pending" || evaluationStatus !== "evaluated") return;
  const { allowed = false, explore } = keptOf(candidate).auto_execution ?? {};
  if (!allowed) return;
  // A share of what runs without a person in a day may try what teaches more.
  const today = explore === undefined ? null : await recovery.automatic(DAY_MS);
  const instead = today && today.explored + 1 <= settings.autoExploreShare * (today.executions + 1) ? explore : undefined;
  const suggested = `suggested with confidence ${candidate.confidence?.toFixed(2)}`;
  const run = (other: string | undefined) => {
    const reason = other === undefined ? suggested : `to learn more, in place of ${selectedAction}, which is ${suggested}`;
    return execute(deps, candidateId, { ...SYSTEM, version, reason }, { instead: other });
  };
  try {
    // What cannot be tried for this group leaves it the suggestion.
    await run(instead).catch((error) => {
      if (instead === undefined || !isMakegoodError(error) || error.code !== "action_refused") throw error;
      return run(undefined);
    });
  } catch (error) {
    if (!isMakegoodError(error)) throw error;
    // Refused is an answer: it waits for a person, or for its next evaluation.
    await recovery.note([line("auto_execution_refused", SYSTEM, { candidateId, groupId, reason: error.message })]);
  }
}

function candidateIdOf(payload: unknown): number | null {
  if (typeof payload !== "object" || payload === null || !Object.hasOwn(payload, "candidate_id")) return null;
  const given = (payload as { candidate_id: unknown }).candidate_id;
  const id = typeof given === "string" && /^\d{1,15}$/.test(given) ? Number(given) : given;
  return typeof id === "number" && Number.isSafeInteger(id) && id > 0 ? id : null;
}

/** The candidate as it is then, whether this call did it or not. Throws `candidate_not_found`; anything else may be tried again. */
export async function evaluateCandidate(deps: CandidateDeps, candidateId: number): Promise<Candidate> {
  const { recovery, hooks, events, clock, settings } = deps;
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
    const result = await evaluateFailure(deps, await failureOf(recovery, group), group);
    const { evaluation } = result;
    await recovery.setCause(group.groupId, evaluation.cause.cause);
    if (settings.ruleDebug) {
      const rules = evaluation.rulesEvaluated.map(({ ruleId, ...rest }) => ({ rule: ruleId, ...rest }));
      events.emit({ type: "lifecycle", what: "recovery_rules", detail: { candidateId, rules } });
    }
    const written = await write(deps, claimed, group, result, startedMs);
    if (written.kind !== "done") continue;
    const about = { candidate: written.candidate, group };
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

/** A person asks: opens the next round where the last one is closed, and evaluates it now. */
export async function suggest(deps: CandidateDeps, groupId: number, actor: Actor): Promise<Candidate> {
  const { recovery, prepare, ids } = deps;
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
