/**
 * What a service says when it reserves, checked and completed: every mistake is reported at once, and the reserve is computed from the same
 * facts that a later estimate will use. And the payload of a usage message, by allow-list: built field by field from the turn that the store holds, and checked by a schema
 * that knows each field, its form and no other. A provider's identifier has no field to stand in and fits none.
 */
import { z } from "zod";
import { MakegoodError } from "../../message/errors.ts";
import type { StandardSchemaV1 } from "../../message/standard-schema.ts";
import type { Reservation, Turn, TurnSettlement } from "../../store/usage.ts";
import { creditsOf, ID, isCount, RATE_MAX, REASON } from "./settle-turn.ts";

export const SNAPSHOT_VERSION = 1;

/** The shapes in which providers number what they answer; none of them names a model or a policy of ours. */
const PROVIDER_ID = /^(resp|chatcmpl|cmpl|msg|run|step|thread|asst|req|call|file|vs|batch|conv|toolu|gen|ft)[-_:]/i;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}$/;

/** A model or a policy version as it may leave the house. */
function isPublicName(value: unknown): value is string {
  return typeof value === "string" && NAME.test(value) && !PROVIDER_ID.test(value);
}

const COUNT = z.custom<number>(isCount, "must be a whole number from 0 to 1,000,000,000");
const HEX_ID = z.string().regex(/^[0-9a-f]{32}$/);
const PUBLIC_NAME = z.custom<string>(isPublicName);
/** Whole numbers as text: no reader may make a float of them. */
const CREDITS = z.string().regex(/^(0|[1-9][0-9]{0,18})$/);
const PERIOD = /^[0-9A-Za-z][0-9A-Za-z:-]{0,31}$/;

function schemaWith(counters: readonly string[]) {
  const known = ["input_tokens", "output_tokens", ...counters];
  const usage = z.object({ input_tokens: COUNT, output_tokens: COUNT }).catchall(COUNT);
  return z.strictObject({
    tenant_id: HEX_ID,
    turn_id: HEX_ID,
    request_id: HEX_ID,
    /** Absent when the quota is the tenant's own. */
    user_id: HEX_ID.optional(),
    policy_version_applied: PUBLIC_NAME,
    effective_model: PUBLIC_NAME,
    outcome: z.enum(["completed", "failed", "aborted"]),
    settlement_method: z.enum(["actual", "estimated", "released"]),
    usage: usage.refine((counts) => Object.keys(counts).every((name) => known.includes(name)), "has a counter that nobody named"),
    reserved_credits: CREDITS,
    settled_credits: CREDITS,
    overshoot_capped: z.boolean(),
    quota_period: z.string().regex(PERIOD),
    reason: z.string().regex(REASON).optional(),
    finalized_at: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
}

export type UsageSnapshot = Readonly<z.infer<ReturnType<typeof schemaWith>>>;

/** `counters`: what may stand in `usage` besides the tokens. */
export const snapshotSchema = (counters: readonly string[] = []): StandardSchemaV1<UsageSnapshot> => schemaWith(counters);

export function snapshotOf(turn: Turn): UsageSnapshot {
  const settlement = turn.settlement as TurnSettlement;
  return {
    tenant_id: turn.tenantId,
    turn_id: turn.turnId,
    request_id: turn.requestId,
    ...(turn.userId === null ? {} : { user_id: turn.userId }),
    policy_version_applied: turn.policyVersion,
    effective_model: turn.model,
    outcome: settlement.outcome,
    settlement_method: settlement.method,
    usage: { ...settlement.counters, input_tokens: settlement.inputTokens, output_tokens: settlement.outputTokens },
    reserved_credits: String(turn.reservedCredits),
    settled_credits: String(settlement.credits),
    overshoot_capped: settlement.capped,
    quota_period: turn.period,
    ...(settlement.reason === null ? {} : { reason: settlement.reason }),
    finalized_at: (turn.finalizedAt as Date).toISOString(),
  };
}

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
  /** The effective model, by the name that may leave the house; never a provider's own id. */
  model: z.custom<string>(isPublicName, "must be a plain name of at most 100 characters and no identifier of a provider"),
  /** For example `2026-11` or `2026-11-16`. */
  period: z.string().regex(PERIOD, "must be of letters, digits, - and :, at most 32"),
  tenantId: ID,
  turnId: ID,
  requestId: ID,
  chatId: ID,
  userId: ID.nullish().transform((id) => id ?? null),
  /** Credits for 1,000 tokens. */
  inputRate: whole(RATE_MAX),
  outputRate: whole(RATE_MAX),
  /** `total`, and `tier:premium` for a model of that tier: reserved and settled together. */
  buckets: z
    .array(BUCKET, COUNTED)
    .min(1, COUNTED)
    .max(BUCKETS_MAX, COUNTED)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "must each be named once")
    .readonly(),
});

export type ReserveInput = Readonly<z.input<typeof RESERVATION>>;

export function reservationOf(input: ReserveInput): Reservation {
  const { data, error } = RESERVATION.safeParse(input);
  if (data) return { ...data, reservedCredits: creditsOf(data, data.estimatedInputTokens, data.outputTokensMax) };
  const problems = error.issues.map(({ path, message }) => `${path.join(".")} ${message}`);
  throw new MakegoodError("invalid_message", problems.join("; "), { problems });
}
