/**
 * The `billing` block of a health answer: how much waits, since when, and whether it would survive. And admission: whether a caller should
 * reserve more, by how much waits and how much of that a tenant owes. Both come in a tenth of a second, from the last good sample if the
 * store takes longer, and never throw.
 */
import { LIMITS } from "../../message/limits.ts";
import { createLastAnswer } from "../../observe/last-answer.ts";
import type { Clock } from "../../platform/clock.ts";
import type { PersistenceCheck } from "../../store/redis/dlq-port/dlq-store.ts";
import { checkPersistence, isRedisStore } from "../../store/redis/dlq-port/engine.ts";
import { fieldsOf } from "../../store/redis/dlq-port/entry.ts";
import { type Tally, tallyOf, UNSETTLED } from "../../store/shared/tally.ts";
import type { StatusCount, Store, StoreTraits } from "../../store/store.ts";
import { parseMicro } from "./money.ts";
import type { SettlementOptions } from "./options.ts";
import { TOPIC } from "./topic.ts";

export interface BillingHealth {
  /** Null: not known. */
  readonly dlq_size: number | null;
  readonly dlq_oldest_entry_age_ms: number | null;
  readonly dlq_store_type: string;
  readonly dlq_durable: boolean;
  /** True only when it was read from the server. */
  readonly dlq_aof_verified: boolean;
  readonly dlq_persistence: "verified" | "failed" | "unknown";
  /** What an operator attests where the server does not say; null: nothing is attested, or nothing has to be. */
  readonly dlq_attested: string | null;
  /** Reservations whose payload is gone or cannot be read: each stands in the log. */
  readonly dlq_unreadable: number;
  /** Whether what goes wrong now would be kept safely: durable, and shown to be, with nothing unreadable. */
  readonly ready_for_billing: boolean;
  /** How old the sample is. */
  readonly sampled_ms_ago: number | null;
}

/** How long a caller waits for an answer. */
const WAIT_MS = 80;
const ASKED_EACH_TIME = -1;
/** A store may be slow for a moment; after this long its last sample is no longer shown as good. */
const TRUSTED_MS = 2_000;

/** What was last found out about the store. */
export interface LastLook extends Pick<PersistenceCheck, "state" | "attested"> {
  /** Reservations whose payload is gone or cannot be read. */
  readonly unreadable: number;
}

/** What is known of a client's store and of what lies below it. */
export interface Standing {
  readonly store: Store;
  readonly clock: Clock;
  unsettled(): Promise<Tally>;
  durable(): boolean;
  looked(): LastLook;
}

export const NOT_LOOKED: LastLook = { state: "unknown", attested: null, unreadable: 0 };
const NOTHING_KNOWN: BillingHealth = {
  ...block("unknown", { count: 0, oldestMs: null }, false, NOT_LOOKED),
  dlq_size: null,
  sampled_ms_ago: null,
};

export function createBillingHealth(kept: Standing): () => Promise<BillingHealth> {
  const ask = async () => block(kept.store.traits.name, await kept.unsettled(), kept.durable(), kept.looked());
  const last = createLastAnswer(kept.clock, ASKED_EACH_TIME, ask);
  return async () => {
    const { value, ageMs } = await last.read(WAIT_MS);
    if (value === undefined || ageMs === null) return NOTHING_KNOWN;
    // An old size is better than none; durability is only what was read now.
    const sure = ageMs <= TRUSTED_MS && kept.durable();
    const doubted = sure ? {} : { dlq_durable: false, dlq_aof_verified: false, ready_for_billing: false };
    return { ...value, ...doubted, sampled_ms_ago: ageMs };
  };
}

function block(kind: string, { count, oldestMs }: Tally, durable: boolean, looked: LastLook): BillingHealth {
  const { state, attested, unreadable } = looked;
  return {
    dlq_size: count,
    dlq_oldest_entry_age_ms: oldestMs,
    dlq_store_type: kind,
    dlq_durable: durable,
    dlq_aof_verified: isAofVerified(kind, looked),
    dlq_persistence: state,
    dlq_attested: attested,
    dlq_unreadable: unreadable,
    ready_for_billing: durable && state === "verified" && unreadable === 0,
    sampled_ms_ago: 0,
  };
}

/** Only the Redis server itself can say so. */
export function isAofVerified(kind: string, { state, attested }: LastLook): boolean {
  return kind === "redis" && state === "verified" && attested === null;
}

/** Redis alone has entries that counts do not show. One that lost even its name may be an obligation, and counts as one. */
export async function lookAtStore(store: Store): Promise<Partial<LastLook>> {
  if (!isRedisStore(store)) return {};
  const { state, attested } = await checkPersistence(store);
  const { found } = await store.quarantined();
  return { state, attested, unreadable: found.filter(({ topic }) => topic === TOPIC || topic === null).length };
}

/** The same block for a server that holds the topic in its own store: from counts that it has already. */
export function billingOfCounts(counts: readonly StatusCount[], traits: StoreTraits, up: boolean, more: Partial<LastLook> = {}) {
  const durable = up && traits.survives !== "nothing";
  const state = traits.survives === "nothing" ? "failed" : up ? "verified" : "unknown";
  return block(traits.name, tallyOf(counts, TOPIC, UNSETTLED), durable, { ...NOT_LOOKED, state, ...more });
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
const ADMISSION_TRUSTED_MS = 5_000;

const NOT_KNOWN: Admission = Object.freeze({ open: true, reason: null, pending: null, exposureMicro: null });

/** A signal for the time before a cost is incurred; finalize() never refuses: by then the money is owed. What is not known closes nothing. */
export function createAdmission(
  { store, clock, unsettled }: Standing,
  { maxPending = MAX_PENDING, maxExposureMicro }: Pick<SettlementOptions, "maxPending" | "maxExposureMicro">,
): (tenantId: string) => Promise<Admission> {
  const last = createLastAnswer(clock, FRESH_MS, async () => {
    const { count: pending } = await unsettled();
    // Who owes it is asked for only while one page holds them all.
    return { pending, owed: pending > maxPending ? null : await owedBy(store) };
  });
  const mostMicro = parseMicro(maxExposureMicro);
  return async (tenantId) => {
    const { value, ageMs } = await last.read(WAIT_MS);
    if (value === undefined || ageMs === null || ageMs > ADMISSION_TRUSTED_MS) return NOT_KNOWN;
    const { pending, owed } = value;
    const exposure = owed && (owed.get(tenantId) ?? 0n);
    const tooMany = pending >= maxPending ? `${pending} obligations wait to be settled, ${maxPending} may` : null;
    const tooMuch = exposure !== null && mostMicro !== null && exposure >= mostMicro;
    const reason = tooMany ?? (tooMuch ? `${exposure} micro wait for this tenant, ${mostMicro} may` : null);
    return { open: reason === null, reason, pending, exposureMicro: exposure === null ? null : String(exposure) };
  };
}

/** What each tenant owes, of what waits in the store. */
async function owedBy(store: Store): Promise<Map<string, bigint>> {
  const owed = new Map<string, bigint>();
  for (const status of ["pending", "processing"] as const) {
    const { data } = await store.list({ topic: TOPIC, status, limit: LIMITS.pageMax });
    for (const { tenantId, payload } of data) {
      if (tenantId === null) continue;
      owed.set(tenantId, (owed.get(tenantId) ?? 0n) + (parseMicro(fieldsOf(payload).actual_cost_micro) ?? 0n));
    }
  }
  return owed;
}
