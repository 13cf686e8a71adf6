/**
 * Money as a canonical integer in decimal text, in millionths: no sign, no leading zero, no exponent, at most thirty digits.
 * Where it is compared it is a BigInt; no number type ever holds it, so no amount is ever rounded.
 */

/** Thirty digits: a million million million dollars, and still far from what any column or wire format breaks at. */
export const MICRO_CHARS_MAX = 30;

const CANONICAL = /^(?:0|[1-9]\d{0,29})$/;

/** Null unless the text is canonical: what we send and keep is never repaired. */
export function parseMicro(value: unknown): bigint | null {
  return typeof value === "string" && CANONICAL.test(value) ? BigInt(value) : null;
}

export interface ReadAmount {
  readonly amount: bigint;
  /** It was not canonical, but its meaning was clear; the reader counts these. */
  readonly normalised: boolean;
}

const LENIENT = /^\s{0,10}\+?0{0,30}(\d{1,30})\s{0,10}$/;

/** What others wrote: also a JSON integer that no double could have changed, a plus, leading zeros. Null: not an amount. */
export function readMicro(value: unknown): ReadAmount | null {
  const strict = parseMicro(value);
  if (strict !== null) return { amount: strict, normalised: false };
  if (typeof value === "number") {
    return Number.isSafeInteger(value) && value >= 0 ? { amount: BigInt(value), normalised: true } : null;
  }
  const digits = typeof value === "string" ? LENIENT.exec(value)?.[1] : undefined;
  return digits === undefined ? null : { amount: BigInt(digits), normalised: true };
}
