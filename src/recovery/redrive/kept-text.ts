/**
 * The two texts a redrive carries through the store, its plan and the state between steps. A process that continues a redrive
 * reads what another (perhaps an older one) wrote, so what does not read as expected is replaced by the careful default, never
 * trusted.
 */

import { CARRIERS } from "../../message/topic.ts";
import { firstState, type StepState } from "./next-step.ts";
import { checkPlan, REDRIVE_DEFAULTS, type StoredPlan } from "./request.ts";

export function planText(plan: StoredPlan): string {
  return JSON.stringify(plan);
}

export function planOf(text: string): StoredPlan {
  const found = object(text);
  const carrier = CARRIERS.find((name) => name === found.carrier);
  try {
    return { ...checkPlan(found as Partial<StoredPlan>), carrier };
  } catch {
    return { ...REDRIVE_DEFAULTS, carrier };
  }
}

/** The state to go on from. Where none was kept, what was sent may have been sent when it began: a runner that dies before it first keeps one must not begin the wait anew. */
export function stateOf(text: string | null, nowMs: number, startedMs = nowMs, notBeforeMs = 0): StepState {
  const found = text === null ? {} : object(text);
  const fresh = firstState(nowMs, notBeforeMs);
  const number = (value: unknown, otherwise: number): number =>
    typeof value === "number" && Number.isFinite(value) ? value : otherwise;
  return {
    tokens: Math.max(0, number(found.tokens, fresh.tokens)),
    atMs: number(found.atMs, nowMs),
    rampMs: typeof found.rampMs === "number" ? found.rampMs : null,
    lastSentMs: number(found.lastSentMs, Math.min(startedMs, nowMs)),
    rate: Math.max(0, number(found.rate, 0)),
    notBeforeMs,
  };
}

export function stateText(state: StepState): string {
  return JSON.stringify(state);
}

function object(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
