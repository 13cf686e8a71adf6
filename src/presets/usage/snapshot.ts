/**
 * The payload of a usage message, by allow-list: built field by field from the turn that the store holds, and checked by a schema
 * that knows each field, its form and no other. A provider's identifier has no field to stand in and fits none.
 */
import { z } from "zod";
import type { StandardSchemaV1 } from "../../message/standard-schema.ts";
import type { Turn, TurnSettlement } from "../../store/usage.ts";
import { isCount, REASON } from "./settle-turn.ts";

export const SNAPSHOT_VERSION = 1;

/** The shapes in which providers number what they answer; none of them names a model or a policy of ours. */
const PROVIDER_ID = /^(resp|chatcmpl|cmpl|msg|run|step|thread|asst|req|call|file|vs|batch|conv|toolu|gen|ft)[-_:]/i;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}$/;

/** A model or a policy version as it may leave the house. */
export function isPublicName(value: unknown): value is string {
  return typeof value === "string" && NAME.test(value) && !PROVIDER_ID.test(value);
}

const COUNT = z.custom<number>(isCount);
const HEX_ID = z.string().regex(/^[0-9a-f]{32}$/);
const PUBLIC_NAME = z.custom<string>(isPublicName);
/** Whole numbers as text: no reader may make a float of them. */
const CREDITS = z.string().regex(/^(0|[1-9][0-9]{0,18})$/);
export const PERIOD = /^[0-9A-Za-z][0-9A-Za-z:-]{0,31}$/;

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
