/**
 * The `billing` block of a health answer: how much waits, since when, and whether it would survive. It comes in
 * a tenth of a second, from the last good sample if the store takes longer, and never throws.
 */
import { createLastAnswer } from "../../observe/last-answer.ts";
import type { Clock } from "../../platform/clock.ts";
import { checkPersistence, isRedisStore } from "../../store/redis/dlq-port/persistence.ts";
import { type Tally, tallyOf, UNSETTLED } from "../../store/shared/tally.ts";
import type { StatusCount, Store, StoreTraits } from "../../store/store.ts";
import type { Keeping, Looked } from "./keeping.ts";
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
export const WAIT_MS = 80;
const ASKED_EACH_TIME = -1;
/** A store may be slow for a moment; after this long its last sample is no longer shown as good. */
const TRUSTED_MS = 2_000;

/** What was last found out about the store. */
export type LastLook = Pick<Looked, "state" | "attested" | "unreadable">;

export const NOT_LOOKED: LastLook = { state: "unknown", attested: null, unreadable: 0 };
const NOTHING_KNOWN: BillingHealth = {
  ...block("unknown", { count: 0, oldestMs: null }, false, NOT_LOOKED),
  dlq_size: null,
  sampled_ms_ago: null,
};

export function createBillingHealth(kept: Keeping, looked: () => LastLook, clock: Clock): () => Promise<BillingHealth> {
  const ask = async () => block(kept.kind, await kept.unsettled(), kept.durable(), looked());
  const last = createLastAnswer(clock, ASKED_EACH_TIME, ask);
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
export function billingOfCounts(
  counts: readonly StatusCount[],
  traits: StoreTraits,
  up: boolean,
  more: Partial<LastLook> = {},
): BillingHealth {
  const durable = up && traits.survives !== "nothing";
  const state = traits.survives === "nothing" ? "failed" : up ? "verified" : "unknown";
  return block(traits.name, tallyOf(counts, TOPIC, UNSETTLED), durable, { ...NOT_LOOKED, state, ...more });
}
