/**
 * What a turn is charged: one pure function from (reservation, how it ended) to the settlement. Known usage is charged as it is,
 * up to a tolerated overshoot; unknown usage by an estimate that never passes the reserve; nothing at all only where the provider
 * was never asked. There is no free cancel.
 */
import type { Reservation, SettlementMethod, TurnOutcome, TurnSettlement } from "../../store/usage.ts";
import { creditsMax, creditsOf, isCount } from "./units.ts";

export interface ProviderUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Other counters of the policy, by name. */
  readonly counters?: Readonly<Record<string, number>> | undefined;
}

export interface TurnEnd {
  readonly outcome: TurnOutcome;
  /** What the provider counted; absent, zero or not a count means unknown. Never what a client says. */
  readonly usage?: ProviderUsage | null | undefined;
  /** False: the turn failed before anything was sent to the provider, so that nothing can have been used. */
  readonly requestSent?: boolean | undefined;
  /** A short code for people and programs: `[a-z0-9_]`, at most 64. */
  readonly reason?: string | null | undefined;
}

export function settleTurn(turn: Reservation, end: TurnEnd, counterNames: readonly string[] = []): TurnSettlement {
  const reason = reasonOf(end.reason);
  const known = knownUsage(end.usage);
  const base = { outcome: end.outcome, reason, counters: countersOf(end.usage, counterNames) };
  if (known) {
    const credits = creditsOf(turn, known.inputTokens, known.outputTokens);
    const most = creditsMax(turn.reservedCredits);
    return { ...base, method: "actual", ...known, credits: credits > most ? most : credits, capped: credits > most };
  }
  const method: SettlementMethod = end.outcome === "failed" && end.requestSent === false ? "released" : "estimated";
  const tokens = method === "released" ? { inputTokens: 0, outputTokens: 0 } : estimate(turn);
  return { ...base, method, ...tokens, credits: creditsOf(turn, tokens.inputTokens, tokens.outputTokens), capped: false };
}

/** min(reserve, estimated input + generation floor), taken by component so that its credits never pass the reserve's. */
function estimate(turn: Reservation): { inputTokens: number; outputTokens: number } {
  return {
    inputTokens: turn.estimatedInputTokens,
    outputTokens: Math.min(turn.generationFloorTokens, turn.outputTokensMax),
  };
}

/** Zero counts as unknown: a provider that says 0 has not counted yet. */
function knownUsage(usage: ProviderUsage | null | undefined): { inputTokens: number; outputTokens: number } | null {
  if (!usage || !isCount(usage.inputTokens) || !isCount(usage.outputTokens)) return null;
  const { inputTokens, outputTokens } = usage;
  return inputTokens + outputTokens === 0 ? null : { inputTokens, outputTokens };
}

/** Only the counters that were named when the preset was made; what else a provider sends along stays outside. */
function countersOf(usage: ProviderUsage | null | undefined, names: readonly string[]): Record<string, number> {
  const given = usage?.counters ?? {};
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(given, name) && isCount(given[name]) ? [[name, given[name]]] : [])),
  );
}

export const REASON = /^[a-z0-9_]{1,64}$/;

/** A text that is no code could carry anything; what it hides is left out rather than handed on. */
function reasonOf(reason: string | null | undefined): string | null {
  if (reason === null || reason === undefined) return null;
  return REASON.test(reason) ? reason : "unspecified";
}
