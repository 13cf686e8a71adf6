/** How what the recovery engine knows becomes the shapes of the contract. */
import type { z } from "zod";
import { redrive, redriveDetail } from "../../contract/recovery/redrives.ts";
import * as shapes from "../../contract/recovery/shapes.ts";
import { isObject } from "../../message/json.ts";
import { systemClock } from "../../platform/clock.ts";
import { approvalsNeeded } from "../../recovery/actions/applies.ts";
import type { CandidateInGroup, Recovery } from "../../recovery/recovery.ts";
import { measured, stateOf } from "../../recovery/redrive/next-step.ts";
import { evaluationToJson } from "../../recovery/rules/evaluation-json.ts";
import { inWireNames, wireOf } from "./wire.ts";

export type Of<Verb extends keyof Recovery> = Awaited<ReturnType<Recovery[Verb]>>;
type OneOf<Verb extends "occurrences" | "provenance" | "redrives"> = Of<Verb>["data"][number];

/** JSON text that we wrote ourselves; what is none is shown as the text it is. */
export function parsedText(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** To three places: what was learned decays, and its further digits say nothing. */
const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;

const rate = (successes: number, failures: number): number | null =>
  successes + failures > 0 ? rounded(successes / (successes + failures)) : null;

export const groupJson = (found: Of<"merge">) => wireOf(shapes.group, found);

export function occurrenceJson(found: OneOf<"occurrences">) {
  const { id: messageId = null, generation = null } = found.message ?? {};
  const idempotencyKey = found.source === "message" ? null : (found.requestKey?.replace(/^report:/, "") ?? null);
  return wireOf(shapes.occurrence, { ...found, idempotencyKey, messageId, generation, failurePayload: undefined });
}

export function provenanceJson({ redriveId = null, durationMs, details, ...found }: OneOf<"provenance">) {
  const took = durationMs === null ? null : rounded(durationMs);
  return wireOf(shapes.provenance, { ...found, redriveId, durationMs: took, details: parsedText(details) });
}

export function statsJson(found: Of<"stats">) {
  const outcomes = found.outcomes.map(({ action, successes, failures }) => {
    return { action, healed: rounded(successes), failed: rounded(failures), successRate: rate(successes, failures) };
  });
  return wireOf(shapes.stats, { ...found, outcomes });
}

export function candidateJson({ candidate, group: { failureMatchId, occurrenceCount, topic, errorCode } }: CandidateInGroup) {
  const executionResult = parsedText(candidate.executionResult);
  return wireOf(shapes.candidate, { ...candidate, failureMatchId, occurrenceCount, topic, errorCode, executionResult });
}

const ofDetail = shapes.candidateDetail.pick({ approvals_missing: true, lapsed: true, lapsed_reason: true, blast_radius: true });

export function candidateDetailJson(detail: Of<"candidate">): z.output<typeof shapes.candidateDetail> {
  const kept = parsedText(detail.candidate.evaluation);
  const { rules_evaluated = [], ...evaluation } = (isObject(kept) ? kept : {}) as { rules_evaluated?: [] };
  return {
    ...{ ...candidateJson(detail), ...wireOf(ofDetail, detail) },
    ...{ rules_evaluated, evaluation: isObject(kept) ? evaluation : null, group: groupJson(detail.group) },
    action: detail.action && actionJson(detail.action),
    inputs: detail.inputs.map(occurrenceJson),
    provenance: detail.provenance?.map(provenanceJson),
  };
}

export function actionJson(found: Of<"putAction">) {
  const { successes, failures } = found;
  const learned = { successes: rounded(successes), failures: rounded(failures), successRate: rate(successes, failures) };
  const said = { totalApplications: Math.round(successes + failures), requiresApproval: approvalsNeeded(found) > 0 };
  return wireOf(shapes.action, { ...found, ...learned, ...said });
}

export function evaluateJson({ evaluation, durationMs, ...found }: Of<"evaluate">) {
  return { ...evaluationToJson(evaluation), ...inWireNames(found), duration_ms: rounded(durationMs) };
}

/** Shown also where they were not given. */
const SELECT = { group_id: null, topic: null, tenant_id: null, error_code: null, ids_given: null };

function withProgress<R extends OneOf<"redrives">>(found: R) {
  const { select, counts, plan, status, state } = found;
  const nowMs = systemClock.wallMs();
  const known = counts.healed + counts.failed + counts.skipped;
  const rate = status === "running" ? measured(stateOf(state, nowMs), nowMs) : 0;
  return {
    ...found,
    select: { ...SELECT, ...inWireNames(select) },
    plan: inWireNames(parsedText(plan)),
    progress: counts.selected === 0 ? 1 : known / counts.selected,
    ratePerSecond: rounded(rate),
    etaSeconds: rate < 0.001 || counts.waiting === 0 ? null : Math.ceil(counts.waiting / rate),
  };
}

export const redriveJson = (found: OneOf<"redrives">) => wireOf(redrive, withProgress(found));
export const redriveDetailJson = (found: Of<"redrive">) => wireOf(redriveDetail, withProgress(found));
