/**
 * Credits: whole numbers all the way (EV-37). Each component is rounded up by itself, and the bounds of what goes in keep every
 * result within the database's 64 bits.
 */
import { MakegoodError } from "../../message/errors.ts";

export const TOKENS_MAX = 1_000_000_000;
export const RATE_MAX = 1_000_000_000n;

/** How far the actual usage may pass the reserve before it is capped, in hundredths. */
const TOLERANCE = 110n;

export interface Rates {
  /** Credits for 1,000 tokens. */
  readonly inputRate: bigint;
  readonly outputRate: bigint;
}

export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX;
}

export function creditsOf({ inputRate, outputRate }: Rates, inputTokens: number, outputTokens: number): bigint {
  return component(inputTokens, inputRate) + component(outputTokens, outputRate);
}

function component(tokens: number, rate: bigint): bigint {
  if (!isCount(tokens) || rate < 0n || rate > RATE_MAX) {
    throw new MakegoodError("invalid_message", `${tokens} tokens at ${rate} credits for 1,000 are out of range`, { tokens });
  }
  return (BigInt(tokens) * rate + 999n) / 1_000n;
}

/** The most that a turn may be charged, whatever it used. */
export const creditsMax = (reservedCredits: bigint): bigint => (reservedCredits * TOLERANCE) / 100n;
