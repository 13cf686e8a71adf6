/**
 * Whether a caller should reserve more (EV-8): how much waits to be settled, and how much of that a tenant owes, against the caps of
 * this client. It is a signal for the time before a cost is incurred; finalize() never refuses, because by then the money is owed.
 * It answers within a tenth of a second and never throws; what is not known closes nothing (FIN-50).
 */
import { createLastAnswer } from "../../observe/last-answer.ts";
import type { Clock } from "../../platform/clock.ts";
import { WAIT_MS } from "./health.ts";

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
  /** What waits in the store for this tenant, in micro, as text. Null: not known, or not to be told by the seeds' port. */
  readonly exposureMicro: string | null;
}

export interface AdmissionCaps {
  readonly maxPending: number;
  /** Null: no cap. */
  readonly maxExposureMicro: bigint | null;
}

/** A sample serves everybody who asks within this time: a busy service asks before every charge. */
const FRESH_MS = 500;
/** After this long nobody vouches for a sample. */
const TRUSTED_MS = 5_000;

export function createAdmission(
  waiting: () => Promise<Waiting>,
  caps: AdmissionCaps,
  clock: Clock,
): (tenantId: string) => Promise<Admission> {
  const last = createLastAnswer(clock, FRESH_MS, waiting);
  return async (tenantId) => {
    const { value, ageMs } = await last.read(WAIT_MS);
    return value === undefined || ageMs === null || ageMs > TRUSTED_MS ? NOT_KNOWN : judge(value, tenantId, caps);
  };
}

const NOT_KNOWN: Admission = Object.freeze({ open: true, reason: null, pending: null, exposureMicro: null });

function judge({ pending, owed }: Waiting, tenantId: string, { maxPending, maxExposureMicro }: AdmissionCaps): Admission {
  const exposure = owed === null ? null : (owed.get(tenantId) ?? 0n);
  const known = { pending, exposureMicro: exposure === null ? null : String(exposure) };
  if (pending >= maxPending) {
    return { ...known, open: false, reason: `${pending} obligations wait to be settled, ${maxPending} may` };
  }
  if (exposure !== null && maxExposureMicro !== null && exposure >= maxExposureMicro) {
    return { ...known, open: false, reason: `${exposure} micro wait for this tenant, ${maxExposureMicro} may` };
  }
  return { ...known, open: true, reason: null };
}
