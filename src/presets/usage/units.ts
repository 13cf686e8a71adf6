/**
 * What a turn is counted in. Ids: every part of a key is a UUID written as 32 lower-case hex digits, so that one turn has one
 * spelling and the parts cannot run into each other. Credits: whole numbers all the way, each component rounded up by itself,
 * never past the database's 64 bits.
 */
import { MakegoodError } from "../../message/errors.ts";
import { invalid } from "../../message/validate.ts";
import type { Reservation } from "../../store/usage.ts";

const SPELLINGS = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/;

export const NOT_AN_ID = "must be a UUID that is not nil";

/** A UUID in any usual spelling as 32 lower-case hex digits; null: anything else, and the nil UUID. */
export function spelledId(value: unknown): string | null {
  const text = typeof value === "string" ? value.toLowerCase() : "";
  return SPELLINGS.test(text) && /[1-9a-f]/.test(text) ? text.replaceAll("-", "") : null;
}

export function usageId(field: string, value: unknown): string {
  const id = spelledId(value);
  if (id === null) throw invalid(field, NOT_AN_ID);
  return id;
}

type KeyParts = Pick<Reservation, "tenantId" | "turnId" | "requestId">;

/** `{tenant_id}/{turn_id}/{request_id}`: the identity of the charge, for the message and for its receiver. */
export const usageKey = ({ tenantId, turnId, requestId }: KeyParts): string => `${tenantId}/${turnId}/${requestId}`;

export const TOKENS_MAX = 1_000_000_000;
export const RATE_MAX = 1_000_000_000n;

/** How far the actual usage may pass the reserve before it is capped, in hundredths. */
const TOLERANCE = 110n;

/** Credits for 1,000 tokens. */
type Rates = Pick<Reservation, "inputRate" | "outputRate">;

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

/** The most that a turn may be charged. */
export const creditsMax = (reservedCredits: bigint): bigint => (reservedCredits * TOLERANCE) / 100n;
