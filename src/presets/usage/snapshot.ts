/**
 * The payload of a usage message, by allow-list: built field by field from the turn that the store holds, and checked by a schema
 * that knows each field, its form and no other. A provider's identifier has no field to stand in and fits none.
 */
import { isObject } from "../../message/json.ts";
import { type StandardSchemaV1, schemaOf } from "../../message/standard-schema.ts";
import type { Turn, TurnSettlement } from "../../store/usage.ts";
import { isCount } from "./units.ts";

export const SNAPSHOT_VERSION = 1;

export interface UsageSnapshot {
  readonly tenant_id: string;
  readonly turn_id: string;
  readonly request_id: string;
  /** Absent when the quota is the tenant's own. */
  readonly user_id?: string | undefined;
  readonly policy_version_applied: string;
  readonly effective_model: string;
  readonly outcome: "completed" | "failed" | "aborted";
  readonly settlement_method: "actual" | "estimated" | "released";
  readonly usage: Readonly<Record<string, number>> & { readonly input_tokens: number; readonly output_tokens: number };
  /** Whole numbers as text: no reader may make a float of them. */
  readonly reserved_credits: string;
  readonly settled_credits: string;
  readonly overshoot_capped: boolean;
  readonly quota_period: string;
  readonly reason?: string | undefined;
  readonly finalized_at: string;
}

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

/** The shapes in which providers number what they answer; none of them names a model or a policy of ours. */
const PROVIDER_ID = /^(resp|chatcmpl|cmpl|msg|run|step|thread|asst|req|call|file|vs|batch|conv|toolu|gen|ft)[-_:]/i;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}$/;

/** A model or a policy version as it may leave the house. */
export function isPublicName(value: unknown): value is string {
  return typeof value === "string" && NAME.test(value) && !PROVIDER_ID.test(value);
}

const text = (pattern: RegExp) => (value: unknown) => typeof value === "string" && pattern.test(value);

const HEX_ID = text(/^[0-9a-f]{32}$/);
const CREDITS = text(/^(0|[1-9][0-9]{0,18})$/);
const OPTIONAL = new Set(["user_id", "reason"]);
export const PERIOD = /^[0-9A-Za-z][0-9A-Za-z:-]{0,31}$/;

function fieldsOf(counters: readonly string[]): Record<string, (value: unknown) => boolean> {
  const names = ["input_tokens", "output_tokens", ...counters];
  return {
    tenant_id: HEX_ID,
    turn_id: HEX_ID,
    request_id: HEX_ID,
    user_id: HEX_ID,
    policy_version_applied: isPublicName,
    effective_model: isPublicName,
    outcome: text(/^(completed|failed|aborted)$/),
    settlement_method: text(/^(actual|estimated|released)$/),
    usage: (value) => isObject(value) && "input_tokens" in value && "output_tokens" in value && onlyCounts(value, names),
    reserved_credits: CREDITS,
    settled_credits: CREDITS,
    overshoot_capped: (value) => typeof value === "boolean",
    quota_period: text(PERIOD),
    reason: text(/^[a-z0-9_]{1,64}$/),
    finalized_at: text(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  };
}

const onlyCounts = (value: Record<string, unknown>, names: readonly string[]): boolean =>
  Object.entries(value).every(([name, count]) => names.includes(name) && isCount(count));

/** `counters`: what may stand in `usage` besides the tokens. */
export function snapshotSchema(counters: readonly string[] = []): StandardSchemaV1<UsageSnapshot> {
  const fields = fieldsOf(counters);
  return schemaOf((value) => {
    if (!isObject(value)) return [{ message: "is not an object" }];
    const unknown = Object.keys(value).filter((name) => !Object.hasOwn(fields, name));
    const wrong = Object.entries(fields).filter(([name, fits]) =>
      Object.hasOwn(value, name) && value[name] !== undefined ? !fits(value[name]) : !OPTIONAL.has(name),
    );
    return [
      ...unknown.map((name) => ({ message: "is not on the allow-list", path: [name] })),
      ...wrong.map(([name]) => ({ message: "is missing or has another form than the allow-list says", path: [name] })),
    ];
  });
}
