/**
 * What a turn is counted in, its ids and credits, and what it is charged: one pure function from (reservation, how it ended) to the settlement. Known usage is charged as it is,
 * up to a tolerated overshoot; unknown usage by an estimate that never passes the reserve; nothing at all only where the provider
 * was never asked. There is no free cancel.
 */
import { z } from "zod";
import { MakegoodError } from "../../message/errors.ts";
import { invalid } from "../../message/validate.ts";
import type { Reservation, SettlementMethod, TurnOutcome, TurnSettlement } from "../../store/usage.ts";

const SPELLINGS = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/;
const NOT_AN_ID = "must be a UUID that is not nil";

/** A UUID in any usual spelling, as 32 lower-case hex digits: one turn has one spelling, and the parts of a key cannot run into each other. */
export const ID = z
  .string(NOT_AN_ID)
  .toLowerCase()
  .refine((text) => SPELLINGS.test(text) && /[1-9a-f]/.test(text), NOT_AN_ID)
  .transform((text) => text.replaceAll("-", ""));

export function usageId(field: string, value: unknown): string {
  const { data: id } = ID.safeParse(value);
  if (id === undefined) throw invalid(field, NOT_AN_ID);
  return id;
}

type KeyParts = Pick<Reservation, "tenantId" | "turnId" | "requestId">;

/** `{tenant_id}/{turn_id}/{request_id}`: the identity of the charge, for the message and for its receiver. */
export const usageKey = ({ tenantId, turnId, requestId }: KeyParts): string => `${tenantId}/${turnId}/${requestId}`;

const TOKENS_MAX = 1_000_000_000;
export const RATE_MAX = 1_000_000_000n;

/** How far the actual usage may pass the reserve before it is capped, in hundredths. */
const TOLERANCE = 110n;

/** Credits for 1,000 tokens. */
type Rates = Pick<Reservation, "inputRate" | "outputRate">;

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX;
}

/** Whole numbers all the way, each component rounded up by itself, never past the database's 64 bits. */
export function creditsOf({ inputRate, outputRate }: Rates, inputTokens: number, outputTokens: number): bigint {
  return component(inputTokens, inputRate) + component(outputTokens, outputRate);
}

function component(tokens: number, rate: bigint): bigint {
  if (!isCount(tokens) || rate < 0n || rate > RATE_MAX) {
    throw new MakegoodError("invalid_message", `${tokens} tokens at ${rate} credits for 1,000 are out of range`, { tokens });
  }
  return (BigInt(tokens) * rate + 999n) / 1_000n;
}

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
  // A text that is no code could carry anything; what it hides is left out rather than handed on.
  const reason = end.reason == null || REASON.test(end.reason) ? (end.reason ?? null) : "unspecified";
  const known = knownUsage(end.usage);
  const base = { outcome: end.outcome, reason, counters: countersOf(end.usage, counterNames) };
  if (known) {
    const credits = creditsOf(turn, known.inputTokens, known.outputTokens);
    const most = (turn.reservedCredits * TOLERANCE) / 100n;
    return { ...base, method: "actual", ...known, credits: credits > most ? most : credits, capped: credits > most };
  }
  const method: SettlementMethod = end.outcome === "failed" && end.requestSent === false ? "released" : "estimated";
  // min(reserve, estimated input + generation floor), taken by component so that its credits never pass the reserve's.
  const estimate = [turn.estimatedInputTokens, Math.min(turn.generationFloorTokens, turn.outputTokensMax)] as const;
  const [inputTokens, outputTokens] = method === "released" ? [0, 0] : estimate;
  return { ...base, method, inputTokens, outputTokens, credits: creditsOf(turn, inputTokens, outputTokens), capped: false };
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
