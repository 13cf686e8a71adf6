/**
 * The evaluation of one candidate: claimed (unevaluated → evaluating), evaluated, and written with its record in one write under
 * the version that was read. Delivered twice it is done once: a process that finds it evaluated leaves it alone, and the second
 * of two that write is refused by the version.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { Group } from "../groups/group.ts";
import type { Hooks } from "../hooks.ts";
import { line, type NewProvenance, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { RedrivePreview } from "../redrive/redrive.ts";
import { evaluationToJson } from "../rules/evaluation-json.ts";
import type { RecoverySettings } from "../settings.ts";
import { type AutoExecutionRecord, autoExecutionOf, toTry } from "./auto-execution.ts";
import type { Candidate, EvaluationStatus } from "./candidate.ts";
import { chooserOf } from "./chosen.ts";
import { wasCancelled } from "./ending.ts";
import { type EvaluatedFailure, type EvaluateFailure, failureOf } from "./evaluate-failure.ts";
import { isEvaluable } from "./when.ts";

export interface EvaluatorDeps {
  readonly recovery: Pick<Records, "candidate" | "candidates" | "group" | "occurrences" | "setCause" | "write">;
  readonly evaluateFailure: EvaluateFailure;
  readonly hooks: Hooks;
  readonly events: Events;
  readonly clock: Clock;
  readonly settings: RecoverySettings;
  readonly random: Random;
  readonly blastRadius: (groupId: number) => Promise<RedrivePreview>;
}

export interface Evaluated {
  readonly candidate: Candidate;
  readonly group: Group;
  /** Whether this call did it; false: it was done already, or another process does it. */
  readonly done: boolean;
}

export interface Evaluator {
  /** Throws `candidate_not_found`; anything else that is thrown may be tried again. */
  evaluate(candidateId: number): Promise<Evaluated>;
  /** After the last try: the candidate says that its evaluation failed, and why. */
  fail(candidateId: number, reason: string): Promise<void>;
}

/** I10: how often it is evaluated anew because the candidate was written meanwhile. */
const ROUNDS_MAX = 5;
const ALTERNATIVES_MAX = 5;
const CANCELLED: AutoExecutionRecord = { allowed: false, refusals: ["cancelled_before"] };

export function createEvaluator(deps: EvaluatorDeps): Evaluator {
  const { recovery, hooks, clock, settings } = deps;

  async function load(candidateId: number): Promise<{ candidate: Candidate; group: Group }> {
    const candidate = await recovery.candidate(candidateId);
    const group = candidate && (await recovery.group(candidate.groupId));
    if (candidate && group) return { candidate, group };
    throw new MakegoodError("candidate_not_found", `There is no candidate ${candidateId}.`, { candidateId });
  }

  /** Decided about or executed meanwhile: what was evaluated before stands, and nothing is under way any more. Null: look again. */
  async function settled(candidate: Candidate): Promise<Candidate | null> {
    const { evaluationStatus: from, evaluatedAt } = candidate;
    const to = evaluatedAt === null ? "unevaluated" : "evaluated";
    return from === to || from === "failed" ? candidate : moved(candidate, to);
  }

  /** Null: another wrote to it meanwhile. Appendix E: what was asked for and not begun ends by way of evaluating. */
  async function moved(
    candidate: Candidate,
    evaluationStatus: EvaluationStatus,
    provenance: NewProvenance[] = [],
  ): Promise<Candidate | null> {
    const begins = candidate.evaluationStatus === "unevaluated" && evaluationStatus !== "evaluating";
    const from = begins ? await moved(candidate, "evaluating") : candidate;
    if (from === null) return null;
    const { candidateId, version } = from;
    const written = await recovery.write({ candidateId, version, patch: { evaluationStatus }, provenance });
    return written.kind === "done" ? written.candidate : null;
  }

  /** The candidate as it is claimed, or null when there is nothing to claim. */
  async function claim(candidate: Candidate): Promise<Candidate | null> {
    if (candidate.evaluationStatus === "evaluating") return candidate;
    return candidate.evaluationStatus === "evaluated" ? null : moved(candidate, "evaluating");
  }

  async function cancelledBefore({ groupId, round, candidateId }: Candidate): Promise<boolean> {
    if (round === 1) return false;
    const { data } = await recovery.candidates({ groupId, current: false, limit: 2 });
    return data.some((one) => one.candidateId !== candidateId && wasCancelled(one));
  }

  async function evaluated(candidate: Candidate, group: Group): Promise<EvaluatedFailure> {
    const result = await deps.evaluateFailure(await failureOf(recovery, group), group);
    await recovery.setCause(group.groupId, result.evaluation.cause.cause);
    if (settings.ruleDebug) {
      const rules = result.evaluation.rulesEvaluated.map(({ ruleId, ...rest }) => ({ rule: ruleId, ...rest }));
      const detail = { candidateId: candidate.candidateId, rules };
      deps.events.emit({ type: "lifecycle", what: "recovery_rules", detail });
    }
    return result;
  }

  async function write(before: Candidate, group: Group, { evaluation, action, actions }: EvaluatedFailure, startedMs: number) {
    const { candidateId, groupId, version } = before;
    const { recommended } = evaluation;
    const chooser = before.selectedAction === null ? null : chooserOf(before);
    const chosen = chooser === null ? (recommended?.action ?? null) : before.selectedAction;
    const ranked = evaluation.ranked.find((each) => each.action === chosen);
    const confidence = chooser === null ? evaluation.confidence : (ranked?.confidence ?? 0);
    const blastRadius = await deps.blastRadius(groupId);
    // What a person chose instead is theirs to execute.
    const asked = { settings, action: chooser === null ? action : null, confidence, group, blastRadius };
    const gates = autoExecutionOf(asked, (suggested) => toTry(evaluation.ranked, suggested, actions, deps.random));
    const auto = gates.allowed && (await cancelledBefore(before)) ? CANCELLED : gates;
    const json = evaluationToJson({ ...evaluation, alternatives: evaluation.alternatives.slice(0, ALTERNATIVES_MAX) });
    const said = {
      candidateId,
      groupId,
      confidenceBefore: before.confidence,
      confidenceAfter: confidence,
      durationMs: clock.monotonicMs() - startedMs,
    };
    const matched = evaluation.rulesEvaluated.filter((rule) => rule.matched).map(({ ruleId }) => ruleId);
    const details = { matched, auto_execution: auto, occurrences: group.occurrenceCount };
    const lines = [line("rule_evaluated", SYSTEM, { ...said, ruleId: matched[0] ?? null, details })];
    if (chosen !== null && chosen !== before.selectedAction) {
      const reason = before.selectedAction === null ? null : `${before.selectedAction} was suggested before`;
      lines.push(line("action_selected", SYSTEM, { ...said, reason, action: chosen, ruleId: recommended?.rules[0] ?? null }));
    }
    // An approval of another action, or of the group as it was before, does not count for this one.
    const lapsed = before.approvals.length > 0 && (chosen !== before.selectedAction || before.groupVersion !== group.version);
    if (lapsed) {
      const reason = chosen === before.selectedAction ? "the group changed" : "another action is suggested now";
      lines.push(line("approval_lapsed", SYSTEM, { candidateId, groupId, action: before.selectedAction, reason }));
    }
    return recovery.write({
      candidateId,
      version,
      patch: {
        evaluationStatus: "evaluated",
        evaluated: true,
        selectedAction: chosen,
        confidence,
        evaluation: JSON.stringify({
          ...json,
          occurrences: group.occurrenceCount,
          auto_execution: auto,
          ...(chooser === null ? {} : { selected_by: chooser }),
        }),
        groupVersion: group.version,
        clearApprovals: lapsed,
      },
      provenance: lines,
    });
  }

  return {
    async evaluate(candidateId) {
      const startedMs = clock.monotonicMs();
      for (let round = 0; round < ROUNDS_MAX; round++) {
        const { candidate, group } = await load(candidateId);
        if (!isEvaluable(candidate)) {
          const rests = await settled(candidate);
          if (rests === null) continue;
          return { candidate: rests, group, done: false };
        }
        const claimed = await claim(candidate);
        if (claimed === null) {
          if (candidate.evaluationStatus === "evaluated") return { candidate, group, done: false };
          continue;
        }
        if (round === 0) await hooks.tell("on_evaluation_start", { candidate: claimed, group });
        const result = await evaluated(claimed, group);
        const written = await write(claimed, group, result, startedMs);
        if (written.kind !== "done") continue;
        const about = { candidate: written.candidate, group };
        const { evaluation } = result;
        await hooks.tell("on_suggestion_generated", { ...about, evaluation });
        const { recommended, confidence } = evaluation;
        // Where a person's choice stands, nothing else was selected.
        if (recommended && recommended.action === about.candidate.selectedAction)
          await hooks.tell("on_action_selected", { ...about, action: recommended.action, confidence });
        return { ...about, done: true };
      }
      const text = `Candidate ${candidateId} changed ${ROUNDS_MAX} times while it was being evaluated: it is tried again.`;
      throw new MakegoodError("version_conflict", text, { candidateId });
    },

    async fail(candidateId, reason) {
      const { candidate } = await load(candidateId);
      const { evaluationStatus, groupId } = candidate;
      if (evaluationStatus !== "evaluating" && evaluationStatus !== "unevaluated") return;
      await moved(candidate, "failed", [line("evaluation_failed", SYSTEM, { candidateId, groupId, reason })]);
    },
  };
}
