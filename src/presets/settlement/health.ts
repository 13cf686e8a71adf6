/**
 * The `billing` block of a health answer (CON-5): how much waits, since when, and whether it would survive. It comes within
 * a tenth of a second, from the last good sample if the store takes longer, and never throws (FIN-59, DF-27).
 */
import { type Clock, within } from "../../platform/clock.ts";
import { checkPersistence, isRedisStore } from "../../store/redis/dlq-port/redis-dlq-store.ts";
import type { StatusCount, Store, StoreTraits } from "../../store/store.ts";
import type { Keeping, Looked } from "./keeping.ts";
import { TOPIC } from "./topic.ts";

export interface BillingHealth {
  /** Null: not known. */
  readonly dlq_size: number | null;
  readonly dlq_oldest_entry_age_ms: number | null;
  readonly dlq_store_type: string;
  readonly dlq_durable: boolean;
  /** True only when it was read from the server (DF-9). */
  readonly dlq_aof_verified: boolean;
  readonly dlq_persistence: "verified" | "failed" | "unknown";
  /** Who vouches for what the server did not say; null: nobody has to, or nobody does. */
  readonly dlq_attested: string | null;
  /** Reservations whose payload is gone or cannot be read: each stands in the log. */
  readonly dlq_unreadable: number;
  /** Whether what goes wrong now would be kept safely: durable, and shown to be, with nothing unreadable (EV-12, FIN-6). */
  readonly ready_for_billing: boolean;
  /** How old the sample is. */
  readonly sampled_ms_ago: number | null;
}

/** How long whoever asks waits for a sample. */
const WAIT_MS = 80;
/** A store that was slow for a moment is not one that is gone; after this long nobody vouches for it. */
const TRUSTED_MS = 2_000;
const NOTHING_KNOWN: BillingHealth = {
  dlq_size: null,
  dlq_oldest_entry_age_ms: null,
  dlq_store_type: "unknown",
  dlq_durable: false,
  dlq_aof_verified: false,
  dlq_persistence: "unknown",
  dlq_attested: null,
  dlq_unreadable: 0,
  ready_for_billing: false,
  sampled_ms_ago: null,
};

/** What was last found out about the store. */
export type LastLook = Pick<Looked, "state" | "attested" | "unreadable">;

export interface Sample<T> {
  readonly value: T;
  readonly ageMs: number;
}

/** Asks unless the last good sample is younger than `freshMs`, waits a moment, and gives the last good sample, however old. Never rejects. */
export function createSampler<T>(clock: Clock, ask: () => Promise<T>, freshMs = -1): () => Promise<Sample<T> | null> {
  let last: { readonly value: T; readonly atMs: number } | null = null;
  let asking: Promise<void> | null = null;
  const sample = (): Sample<T> | null => last && { value: last.value, ageMs: clock.monotonicMs() - last.atMs };

  async function again(): Promise<void> {
    const atMs = clock.monotonicMs();
    last = await ask()
      .then((value) => ({ value, atMs }))
      .catch(() => last);
    asking = null;
  }

  return async () => {
    if ((sample()?.ageMs ?? Number.POSITIVE_INFINITY) > freshMs) {
      // One question at a time: probes that come while the store hangs must not pile up on it.
      asking ??= again();
      await within(clock, asking, WAIT_MS);
    }
    return sample();
  };
}

export function createBillingHealth(kept: Keeping, looked: () => LastLook, clock: Clock): () => Promise<BillingHealth> {
  const sample = createSampler(clock, async () => block(kept.kind, await kept.unsettled(), kept.durable(), looked()));
  return async () => {
    const last = await sample();
    if (last === null) return NOTHING_KNOWN;
    const agoMs = Math.round(last.ageMs);
    // An old size is better than none; durability is what it is now, and is not claimed from hearsay.
    const sure = agoMs <= TRUSTED_MS && kept.durable();
    const doubted = sure ? {} : { dlq_durable: false, dlq_aof_verified: false, ready_for_billing: false };
    return { ...last.value, ...doubted, sampled_ms_ago: agoMs };
  };
}

/** Kept and not settled, dead letters not counted. */
export interface Unsettled {
  readonly size: number;
  readonly oldestMs: number | null;
}

export function unsettledIn(counts: readonly StatusCount[]): Unsettled {
  const ours = counts.filter(({ topic, status }) => topic === TOPIC && (status === "pending" || status === "processing"));
  const ages = ours.flatMap(({ oldestMs }) => (oldestMs === null ? [] : [oldestMs]));
  const size = ours.reduce((sum, { count }) => sum + count, 0);
  return { size, oldestMs: ages.length === 0 ? null : Math.max(...ages) };
}

function block(kind: string, { size, oldestMs }: Unsettled, durable: boolean, looked: LastLook): BillingHealth {
  const { state, attested, unreadable } = looked;
  return {
    dlq_size: size,
    dlq_oldest_entry_age_ms: oldestMs,
    dlq_store_type: kind,
    dlq_durable: durable,
    dlq_aof_verified: kind === "redis" && state === "verified" && attested === null,
    dlq_persistence: state,
    dlq_attested: attested,
    dlq_unreadable: unreadable,
    ready_for_billing: durable && state === "verified" && unreadable === 0,
    sampled_ms_ago: 0,
  };
}

/** What billingOfCounts() cannot see in counts; only Redis has any of it. What lost even its name may be an obligation, and counts as one. */
export async function lookAtStore(store: Store): Promise<Partial<LastLook>> {
  if (!isRedisStore(store)) return {};
  const { attested } = await checkPersistence(store);
  const { found } = await store.setAside();
  return { attested, unreadable: found.filter(({ topic }) => topic === TOPIC || topic === null).length };
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
  return block(traits.name, unsettledIn(counts), durable, { state, attested: null, unreadable: 0, ...more });
}
