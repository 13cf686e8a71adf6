/**
 * What a service says when it reserves, checked and completed: ids in their one spelling, counts in their bounds, the reserve
 * computed from the same facts that a later estimate will use. Reports every mistake at once.
 */
import { z } from "zod";
import { MakegoodError } from "../../message/errors.ts";
import type { Reservation } from "../../store/usage.ts";
import { creditsOf, ID, isCount, RATE_MAX } from "./settle-turn.ts";
import { isPublicName, PERIOD } from "./snapshot.ts";

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

const COUNT = z.custom<number>(isCount, "must be a whole number from 0 to 1,000,000,000");

function whole(max: bigint) {
  const fits = (value: unknown): boolean => {
    const amount = typeof value === "bigint" || Number.isSafeInteger(value) ? BigInt(value as bigint | number) : -1n;
    return amount >= 0n && amount <= max;
  };
  return z.custom<bigint | number>(fits, `must be a whole number from 0 to ${max}`).transform(BigInt);
}

const BUCKETS_MAX = 8;
const LIMIT_MAX = 2n ** 62n;
const COUNTED = `must name one to ${BUCKETS_MAX} quota buckets`;
const BUCKET = z.object({
  name: z.string().regex(/^[a-z][a-z0-9_:-]{0,62}$/, "must be of lower-case letters, digits, _, : and -, at most 63"),
  limitCredits: whole(LIMIT_MAX).nullable().default(null),
});

/** The mistakes are reported in this order. */
const RESERVATION = z.object({
  estimatedInputTokens: COUNT,
  outputTokensMax: COUNT,
  generationFloorTokens: COUNT,
  policyVersion: z.custom<string>(isPublicName, "must be a plain name of at most 100 characters"),
  model: z.custom<string>(isPublicName, "must be a plain name of at most 100 characters and no identifier of a provider"),
  period: z.string().regex(PERIOD, "must be of letters, digits, - and :, at most 32"),
  tenantId: ID,
  turnId: ID,
  requestId: ID,
  chatId: ID,
  userId: ID.nullish().transform((id) => id ?? null),
  inputRate: whole(RATE_MAX),
  outputRate: whole(RATE_MAX),
  buckets: z
    .array(BUCKET, COUNTED)
    .min(1, COUNTED)
    .max(BUCKETS_MAX, COUNTED)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "must each be named once"),
});

export function reservationOf(input: ReserveInput): Reservation {
  const { data, error } = RESERVATION.safeParse(input);
  if (data) return { ...data, reservedCredits: creditsOf(data, data.estimatedInputTokens, data.outputTokensMax) };
  const problems = error.issues.map(({ path, message }) => `${path.join(".")} ${message}`);
  throw new MakegoodError("invalid_message", problems.join("; "), { problems });
}
