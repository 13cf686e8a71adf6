/**
 * What a redrive does next, as pure functions: the canary of a group goes before its other messages; no window of time sees more than the
 * rate allows and a tenth of a second's worth; the rate doubles each second, and starts over after a gap.
 */
import { readObject } from "../../message/json.ts";
import type { RedriveCounts, RedriveGroup } from "./redrive.ts";
import type { Room } from "./redrive-sql.ts";
import type { RedrivePlan } from "./request.ts";

/** What is remembered between steps, also for a process that continues it. Times are wall clock milliseconds. */
export type StepState = ReturnType<typeof stateOf>;

export type Step =
  | { readonly kind: "send"; readonly n: number }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "stop"; readonly reason: string }
  | { readonly kind: "done"; readonly reason: string | null };

/** What the rate gives in this time is sent at once. */
const QUANTUM_MS = 100;
/** After a gap longer than this, what was learned about the receiver's strength is old. */
const GAP_MS = 5_000;
/** Messages whose ending is still unknown after this long are not waited for. */
export const UNKNOWN_MS_MAX = 24 * 3_600_000;
const LOOK_MS = { min: 100, max: 30_000 } as const;
/** While a receiver is down: its breaker lets one message a second be tried. */
const DOWN_MS = 1_000;
/** The rate that is shown is that of about so long. */
const RATE_MS = 5_000;

/**
 * The state to go on from, perhaps of an older process: what does not read as expected begins anew. Where none was kept, what was sent may
 * have been sent when it began: a runner that dies before it first keeps one must not begin the wait anew.
 */
export function stateOf(kept: string | null, nowMs: number, startedMs = nowMs, notBeforeMs = 0) {
  const found = (kept && readObject(kept)) || {};
  const number = <T>(value: unknown, otherwise: T) => (Number.isFinite(value) ? (value as number) : otherwise);
  return {
    /** Messages that may be sent now, as of `atMs`. */
    tokens: Math.max(0, number(found.tokens, 1)),
    atMs: number(found.atMs, nowMs),
    /** When the ramp began; null: no group is judged yet. */
    rampMs: number(found.rampMs, null),
    lastSentMs: number(found.lastSentMs, Math.min(startedMs, nowMs)),
    /** Messages a second that were sent lately, as of `lastSentMs`. */
    rate: Math.max(0, number(found.rate, 0)),
    notBeforeMs,
  };
}

/** Null: it stays as it is judged now. `down`: the receiver's breaker holds its messages, so what failed says nothing about them. */
export function verdictOf({ failureShareMax, failureMin, canary }: RedrivePlan, group: RedriveGroup, down: boolean) {
  const failed = group.failed - group.baseFailed;
  const known = group.healed - group.baseHealed + failed;
  // The whole canary counts: a message that heals at once says little about one that times out.
  const isWhole = group.verdict === null && group.sent === 0 && (group.canary === 0 || group.waiting === 0);
  if (known === 0 || (group.waiting === 0 && group.sent > 0) || group.verdict === "failed") return null;
  if (failureShareMax < 1 && (known >= failureMin || isWhole) && failed / known > failureShareMax) {
    const of = isWhole && canary > 0 ? "of the canary" : "whose ending is known";
    const reason = `${failed} of ${known} ${of} failed, more than the share of ${failureShareMax} that was allowed`;
    return { verdict: down ? "inconclusive" : "failed", reason } as const;
  }
  return isWhole && !down ? ({ verdict: "healed", reason: null } as const) : null;
}

/** `state`: what is remembered once the step is taken. */
type Next = { readonly step: Step; readonly state: StepState };

export function nextStep(plan: RedrivePlan, counts: RedriveCounts, room: Room, before: StepState, nowMs: number): Next {
  if (counts.waiting === 0) return { step: end(counts, before, nowMs), state: before };
  const delayMs = before.notBeforeMs - nowMs;
  if (delayMs > 0) return { step: { kind: "wait", ms: Math.min(LOOK_MS.max, Math.ceil(delayMs)) }, state: before };
  if (room.open === 0) return { step: blocked(plan, counts, room, before, nowMs), state: before };

  const free = (plan.concurrency ?? Number.POSITIVE_INFINITY) - counts.sent;
  if (free <= 0) return { step: full(plan, counts, before, nowMs), state: before };

  const state = refilled(plan, before, plan.canary > 0 && room.healed === 0, nowMs);
  const rate = rateOf(plan, state, nowMs);
  const most = Math.min(room.open, counts.waiting, free);
  const wanted = Math.min(quantum(rate), most);
  const n = Math.min(Math.floor(state.tokens + 1e-9), most);
  if (n < wanted) {
    const ms = Math.min(1_000, Math.max(1, Math.ceil(((wanted - state.tokens) * 1_000) / rate)));
    return { step: { kind: "wait", ms }, state };
  }
  const tokens = Math.max(0, state.tokens - n);
  const lately = measured(before, nowMs) + (n * 1_000) / RATE_MS;
  return { step: { kind: "send", n }, state: { ...state, tokens, lastSentMs: nowMs, rate: lately } };
}

/** Messages a second that were sent lately, as it is now. */
export function measured({ rate, lastSentMs }: StepState, nowMs: number): number {
  return rate * Math.exp(-Math.max(0, nowMs - lastSentMs) / RATE_MS);
}

const quantum = (rate: number): number => Math.max(1, Math.floor((rate * QUANTUM_MS) / 1_000));

/** Doubles each second; the first canary goes at the pace the ramp begins with. */
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

/** Nothing may be sent: a canary is under way, a receiver is down, or every group that is left has failed. */
function blocked(plan: RedrivePlan, counts: RedriveCounts, room: Room, before: StepState, nowMs: number): Step {
  const { undecided, inconclusive, failed, groups, underWay, reason } = room;
  if (nowMs - before.lastSentMs >= UNKNOWN_MS_MAX && undecided > 0) {
    return { kind: "stop", reason: `of the canary of ${plan.canary}, ${counts.sent} have no known ending after 24 hours` };
  }
  if (undecided > 0 || underWay > 0) return { kind: "wait", ms: lookMs(before, nowMs) };
  if (inconclusive > 0) return { kind: "wait", ms: DOWN_MS };
  if (groups <= 1 && reason !== null) return { kind: "stop", reason };
  const first = reason ?? "not known";
  return { kind: "stop", reason: `${failed} of ${groups} groups failed, the others are done; the first: ${first}` };
}

/** As many are under way as may be: the next goes when one of them has ended. */
function full({ concurrency }: RedrivePlan, { sent }: RedriveCounts, before: StepState, nowMs: number): Step {
  if (nowMs - before.lastSentMs < UNKNOWN_MS_MAX) return { kind: "wait", ms: lookMs(before, nowMs) };
  return { kind: "stop", reason: `${sent} of at most ${concurrency} under way have no known ending after 24 hours` };
}

function end(counts: RedriveCounts, state: StepState, nowMs: number): Step {
  if (counts.sent === 0) return { kind: "done", reason: null };
  if (nowMs - state.lastSentMs < UNKNOWN_MS_MAX) return { kind: "wait", ms: lookMs(state, nowMs) };
  return { kind: "done", reason: `${counts.sent} were sent 24 hours ago or more and it is not known yet what became of them` };
}

/** The longer ago the last message was sent, the longer until the next look at what became of it. */
function lookMs({ lastSentMs }: StepState, nowMs: number): number {
  return Math.min(LOOK_MS.max, Math.max(LOOK_MS.min, Math.floor((nowMs - lastSentMs) / 10)));
}
