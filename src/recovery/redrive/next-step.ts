/**
 * What a redrive does next, as one pure function of its plan, its counts, its state and the time: send so many, wait, stop, or be
 * done. The canary goes before all others; no window of time sees more than the rate allows and a tenth of a second's worth; the rate
 * doubles each second, and starts over after a gap; more failures than the plan bears stop it.
 */
import type { RedriveCounts } from "./redrive.ts";
import type { RedrivePlan } from "./request.ts";

/** What is remembered between steps, also for another process that continues it. Times are wall clock milliseconds. */
export interface StepState {
  /** Messages that may be sent now, as of `atMs`. */
  readonly tokens: number;
  readonly atMs: number;
  /** When the ramp began; null: the canary is not over. */
  readonly rampMs: number | null;
  readonly lastSentMs: number;
  /** What had been sent, healed and failed when this run of it began: a resumed one stops by what it does from there on. */
  readonly base: { readonly sent: number; readonly healed: number; readonly failed: number };
  /** Nothing is sent before this time; what stopped and was resumed does not wait again. */
  readonly notBeforeMs: number;
  /** It stopped by itself; if it runs again, a person wanted that and a new canary goes first. */
  readonly stopped: boolean;
}

export type Step =
  | { readonly kind: "send"; readonly n: number }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "stop"; readonly reason: string }
  | { readonly kind: "done"; readonly reason: string | null };

export interface NextStep {
  readonly step: Step;
  readonly state: StepState;
}

/** How much is sent at once: what the rate gives in this time. */
const QUANTUM_MS = 100;
/** After a gap longer than this, what was learned about the receiver's strength is old. */
const GAP_MS = 5_000;
/** Messages whose ending is still unknown after this long are not waited for. */
export const UNKNOWN_MS_MAX = 24 * 3_600_000;
const LOOK_MS = { min: 100, max: 30_000 } as const;

export function firstState(nowMs: number, notBeforeMs = 0): StepState {
  const base = { sent: 0, healed: 0, failed: 0 };
  return { tokens: 1, atMs: nowMs, rampMs: null, lastSentMs: nowMs, base, notBeforeMs, stopped: false };
}

/** The state of one that stopped and was resumed: failures count from here. */
export function restarted(counts: RedriveCounts, nowMs: number): StepState {
  const { healed, failed } = counts;
  return { ...firstState(nowMs), base: { sent: sentOf(counts), healed, failed } };
}

export function nextStep(plan: RedrivePlan, counts: RedriveCounts, before: StepState, nowMs: number): NextStep {
  const reason = failureReason(plan, counts, before);
  if (reason !== null) return { step: { kind: "stop", reason }, state: { ...before, stopped: true } };
  if (counts.waiting === 0) return { step: end(counts, before, nowMs), state: before };

  const delayMs = before.notBeforeMs - nowMs;
  if (delayMs > 0) return { step: { kind: "wait", ms: Math.min(LOOK_MS.max, Math.ceil(delayMs)) }, state: before };

  const canaryLeft = plan.canary - (sentOf(counts) - before.base.sent);
  const inCanary = before.rampMs === null && canaryLeft > 0;
  // The whole canary counts: a message that heals at once says little about one that times out.
  if (before.rampMs === null && !inCanary && plan.canary > 0 && counts.sent > 0) {
    if (nowMs - before.lastSentMs < UNKNOWN_MS_MAX) return { step: { kind: "wait", ms: lookMs(before, nowMs) }, state: before };
    const unknown = `of the ${plan.canary} of the canary, ${counts.sent} have no known ending after 24 hours`;
    return { step: { kind: "stop", reason: unknown }, state: { ...before, stopped: true } };
  }
  const state = refilled(plan, before, inCanary, nowMs);
  const rate = rateOf(plan, state, nowMs);
  const room = inCanary ? canaryLeft : counts.waiting;
  const wanted = Math.min(quantum(rate), room, counts.waiting);
  const n = Math.min(Math.floor(state.tokens + 1e-9), room, counts.waiting);
  if (n < wanted) {
    const ms = Math.min(1_000, Math.max(1, Math.ceil(((wanted - state.tokens) * 1_000) / rate)));
    return { step: { kind: "wait", ms }, state };
  }
  return { step: { kind: "send", n }, state: { ...state, tokens: Math.max(0, state.tokens - n), lastSentMs: nowMs } };
}

const sentOf = ({ sent, healed, failed }: RedriveCounts): number => sent + healed + failed;

const quantum = (rate: number): number => Math.max(1, Math.floor((rate * QUANTUM_MS) / 1_000));

/** Doubles each second; the canary goes at the pace the ramp begins with. */
function rateOf({ rampFrom, ratePerSecond }: RedrivePlan, { rampMs }: StepState, nowMs: number): number {
  const seconds = rampMs === null ? 0 : Math.min(30, Math.floor(Math.max(0, nowMs - rampMs) / 1_000));
  return Math.min(ratePerSecond, rampFrom * 2 ** seconds);
}

function refilled(plan: RedrivePlan, before: StepState, inCanary: boolean, nowMs: number): StepState {
  const passedMs = Math.max(0, nowMs - before.atMs);
  const begins = !inCanary && (before.rampMs === null || passedMs > GAP_MS || nowMs < before.rampMs);
  const state = begins ? { ...before, rampMs: nowMs } : before;
  const rate = rateOf(plan, state, nowMs);
  // A full bucket is one quantum: an hour of waiting must not become an hour's worth at once.
  const tokens = Math.min(quantum(rate), before.tokens + (passedMs * rate) / 1_000);
  return { ...state, tokens, atMs: nowMs };
}

function failureReason(
  { failureShareMax, failureMin, canary }: RedrivePlan,
  counts: RedriveCounts,
  state: StepState,
): string | null {
  const healed = counts.healed - state.base.healed;
  const failed = counts.failed - state.base.failed;
  const known = healed + failed;
  if (known === 0 || failureShareMax >= 1) return null;
  const canaryIsWhole = canary > 0 && counts.sent === 0 && state.rampMs === null && known >= canary;
  if (known < failureMin && !canaryIsWhole) return null;
  if (failed / known <= failureShareMax || counts.waiting === 0) return null;
  const of = canaryIsWhole ? "of the canary" : "whose ending is known";
  return `${failed} of ${known} ${of} failed, more than the share of ${failureShareMax} that was allowed`;
}

function end(counts: RedriveCounts, state: StepState, nowMs: number): Step {
  if (counts.sent === 0) return { kind: "done", reason: null };
  if (nowMs - state.lastSentMs < UNKNOWN_MS_MAX) return { kind: "wait", ms: lookMs(state, nowMs) };
  return { kind: "done", reason: `${counts.sent} were sent 24 hours ago or more and it is not known yet what became of them` };
}

/** The longer ago the last message was sent, the longer until the next look at what became of it. */
export function lookMs({ lastSentMs }: Pick<StepState, "lastSentMs">, nowMs: number): number {
  return Math.min(LOOK_MS.max, Math.max(LOOK_MS.min, Math.floor((nowMs - lastSentMs) / 10)));
}
