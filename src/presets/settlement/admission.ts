/**
 * Whether a caller should reserve more: how much waits to be settled, and how much of that a tenant owes, against the caps of
 * this client. It is a signal for the time before a cost is incurred; finalize() never refuses, because by then the money is
 * owed. It answers in a tenth of a second and never throws; what is not known closes nothing.
 */
import { createLastAnswer } from "../../observe/last-answer.ts";
import type { Clock } from "../../platform/clock.ts";
import { WAIT_MS } from "./health.ts";
import { parseMicro } from "./money.ts";
import type { SettlementOptions } from "./options.ts";

/** What waits, as a store can tell it. */
export interface Waiting {
  readonly pending: number;
  /** What each tenant owes, in micro. Null: there is more than was asked for, or this store cannot tell. */
  readonly owed: ReadonlyMap<string, bigint> | null;
}

export interface Admission {
  /** False: a cap is reached; `reason` says which. */
  readonly open: boolean;
  readonly reason: string | null;
  /** Obligations of all tenants that wait, wherever they are kept. Null: not known now. */
  readonly pending: number | null;
  /** What waits in the store for this tenant, in micro, as text. Null: not known, or the seeds' port cannot say it. */
  readonly exposureMicro: string | null;
}

const MAX_PENDING = 50;
/** A sample serves every call for this long: a busy service asks before every charge. */
const FRESH_MS = 500;
/** After this long a sample is no longer used. */
const TRUSTED_MS = 5_000;

const NOT_KNOWN: Admission = Object.freeze({ open: true, reason: null, pending: null, exposureMicro: null });

/** `waiting`: what waits; who owes it is asked for only while no more than `limit` do. */
export function createAdmission(
  waiting: (limit: number) => Promise<Waiting>,
  { maxPending = MAX_PENDING, maxExposureMicro }: Pick<SettlementOptions, "maxPending" | "maxExposureMicro">,
  clock: Clock,
): (tenantId: string) => Promise<Admission> {
  const last = createLastAnswer(clock, FRESH_MS, () => waiting(maxPending));
  const mostMicro = parseMicro(maxExposureMicro);
  return async (tenantId) => {
    const { value, ageMs } = await last.read(WAIT_MS);
    if (value === undefined || ageMs === null || ageMs > TRUSTED_MS) return NOT_KNOWN;
    const { pending, owed } = value;
    const exposure = owed && (owed.get(tenantId) ?? 0n);
    const tooMany = pending >= maxPending ? `${pending} obligations wait to be settled, ${maxPending} may` : null;
    const tooMuch = exposure !== null && mostMicro !== null && exposure >= mostMicro;
    const reason = tooMany ?? (tooMuch ? `${exposure} micro wait for this tenant, ${mostMicro} may` : null);
    return { open: reason === null, reason, pending, exposureMicro: exposure === null ? null : String(exposure) };
  };
}
