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
import { line, SYSTEM } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { RedrivePreview } from "../redrive/redrive.ts";
import { evaluationToJson } from "../rules/evaluation-json.ts";
import type { RecoverySettings } from "../settings.ts";
import { autoExecutionOf, toTry } from "./auto-execution.ts";
import type { Candidate } from "./candidate.ts";
import { chooserOf } from "./chosen.ts";
import { newestFailure } from "./confidence-now.ts";
import type { EvaluatedFailure, EvaluateFailure } from "./evaluate-failure.ts";
import { isEvaluable } from "./when.ts";

export interface EvaluatorDeps {
  readonly recovery: Pick<Records, "candidate" | "group" | "occurrences" | "setCause" | "write">;
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

export function createEvaluator(deps: EvaluatorDeps): Evaluator {
  const { recovery, hooks, clock, settings } = deps;

  async function load(candidateId: number): Promise<{ candidate: Candidate; group: Group }> {
    const candidate = await recovery.candidate(candidateId);
    const group = candidate && (await recovery.group(candidate.groupId));
    if (candidate && group) return { candidate, group };
    throw new MakegoodError("candidate_not_found", `There is no candidate ${candidateId}.`, { candidateId });
  }

  /** The candidate as it is claimed, or null when there is nothing to claim. */
  async function claim(candidate: Candidate): Promise<Candidate | null> {
    if (candidate.evaluationStatus === "evaluating") return candidate;
    if (candidate.evaluationStatus === "evaluated") return null;
    const { candidateId, version } = candidate;
    const written = await recovery.write({ candidateId, version, patch: { evaluationStatus: "evaluating" }, provenance: [] });
    return written.kind === "done" ? written.candidate : null;
  }

  async function evaluated(candidate: Candidate, group: Group): Promise<EvaluatedFailure> {
    const result = await deps.evaluateFailure(await newestFailure(recovery, group), group);
    await recovery.setCause(group.groupId, result.cause);
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
    const gates = { settings, action: chooser === null ? action : null, confidence, group, blastRadius };
    const auto = autoExecutionOf(gates, (suggested) => toTry(evaluation.ranked, suggested, actions, deps.random));
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
        if (!isEvaluable(candidate)) return { candidate, group, done: false };
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
      const { evaluationStatus, version, groupId } = candidate;
      if (evaluationStatus !== "evaluating" && evaluationStatus !== "unevaluated") return;
      const provenance = [line("evaluation_failed", SYSTEM, { candidateId, groupId, reason })];
      // Appendix E: what was never begun cannot fail.
      if (evaluationStatus === "unevaluated") {
        const begun = await recovery.write({ candidateId, version, patch: { evaluationStatus: "evaluating" }, provenance: [] });
        if (begun.kind !== "done") return;
        await recovery.write({
          candidateId,
          version: begun.candidate.version,
          patch: { evaluationStatus: "failed" },
          provenance,
        });
        return;
      }
      await recovery.write({ candidateId, version, patch: { evaluationStatus: "failed" }, provenance });
    },
  };
}
