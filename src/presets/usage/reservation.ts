/**
 * What a service says when it reserves, checked and completed: ids in their one spelling, counts in their bounds, the reserve
 * computed from the same facts that a later estimate will use. Reports every mistake at once.
 */
import { isMakegoodError, MakegoodError } from "../../message/errors.ts";
import type { Bucket, Reservation } from "../../store/usage.ts";
import { isPublicName, PERIOD } from "./snapshot.ts";
import { creditsOf, isCount, RATE_MAX, usageId } from "./units.ts";

type Given = Omit<Reservation, "userId" | "inputRate" | "outputRate" | "reservedCredits" | "buckets">;

export interface ReserveInput extends Given {
  readonly userId?: string | null | undefined;
  /** The effective model, by the name that may leave the house; never a provider's own id. */
  readonly model: string;
  /** For example `2026-11` or `2026-11-16`. */
  readonly period: string;
  /** Credits for 1,000 tokens. */
  readonly inputRate: bigint | number;
  readonly outputRate: bigint | number;
  /** `total`, and `tier:premium` for a model of that tier: reserved and settled together. */
  readonly buckets: readonly { readonly name: string; readonly limitCredits?: bigint | number | null | undefined }[];
}

const BUCKET = /^[a-z][a-z0-9_:-]{0,62}$/;
const BUCKETS_MAX = 8;

export function reservationOf(input: ReserveInput): Reservation {
  const problems: string[] = [];
  const check = (fits: boolean, what: string): void => {
    if (!fits) problems.push(what);
  };
  const id = (field: string, value: unknown): string => {
    try {
      return usageId(field, value);
    } catch (error) {
      if (!isMakegoodError(error)) throw error;
      problems.push(error.message);
      return "";
    }
  };
  const whole = (field: string, value: unknown, max: bigint): bigint => {
    const fits = typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
    const amount = fits ? BigInt(value as bigint | number) : -1n;
    check(amount >= 0n && amount <= max, `${field} must be a whole number from 0 to ${max}`);
    return amount;
  };
  for (const field of ["estimatedInputTokens", "outputTokensMax", "generationFloorTokens"] as const) {
    check(isCount(input[field]), `${field} must be a whole number from 0 to 1,000,000,000`);
  }
  check(isPublicName(input.policyVersion), "policyVersion must be a plain name of at most 100 characters");
  check(isPublicName(input.model), "model must be a plain name of at most 100 characters and no identifier of a provider");
  check(typeof input.period === "string" && PERIOD.test(input.period), "period must be of letters, digits, - and :, at most 32");
  const reservation = {
    tenantId: id("tenantId", input.tenantId),
    turnId: id("turnId", input.turnId),
    requestId: id("requestId", input.requestId),
    chatId: id("chatId", input.chatId),
    userId: input.userId == null ? null : id("userId", input.userId),
    policyVersion: input.policyVersion,
    model: input.model,
    period: input.period,
    estimatedInputTokens: input.estimatedInputTokens,
    outputTokensMax: input.outputTokensMax,
    generationFloorTokens: input.generationFloorTokens,
    inputRate: whole("inputRate", input.inputRate, RATE_MAX),
    outputRate: whole("outputRate", input.outputRate, RATE_MAX),
    buckets: bucketsOf(input, check, whole),
  };
  if (problems.length > 0) throw new MakegoodError("invalid_message", problems.join("; "), { problems });
  const reservedCredits = creditsOf(reservation, reservation.estimatedInputTokens, reservation.outputTokensMax);
  return { ...reservation, reservedCredits };
}

const LIMIT_MAX = 2n ** 62n;

function bucketsOf(
  { buckets }: ReserveInput,
  check: (fits: boolean, what: string) => void,
  whole: (field: string, value: unknown, max: bigint) => bigint,
): Bucket[] {
  if (!Array.isArray(buckets) || buckets.length === 0 || buckets.length > BUCKETS_MAX) {
    check(false, `buckets must name one to ${BUCKETS_MAX} quota buckets`);
    return [];
  }
  const names = buckets.map(({ name }) => name);
  check(new Set(names).size === names.length, "buckets must each be named once");
  check(
    names.every((name) => typeof name === "string" && BUCKET.test(name)),
    "a bucket's name is of lower-case letters, digits, _, : and -, at most 63",
  );
  return buckets.map(({ name, limitCredits = null }) => ({
    name,
    limitCredits: limitCredits === null ? null : whole(`limitCredits of ${name}`, limitCredits, LIMIT_MAX),
  }));
}
