/**
 * The usage preset: a chat turn reserves quota, is finalised exactly once (by the turn itself, a cancel or the watchdog, also all
 * of them at once), and its debit and its one message are one transaction. When `finalize` returns, it is committed: only then
 * may a client learn that the turn is over.
 */
import { isInDoubt, persistently } from "../../client/persistently.ts";
import type { Makegood } from "../../create.ts";
import { MakegoodError } from "../../message/errors.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { createIds } from "../../platform/ids.ts";
import { systemRandom as random } from "../../platform/random.ts";
import { tallyOf } from "../../store/shared/tally.ts";
import type { At, Store, Transaction } from "../../store/store.ts";
import type { FinalizeResult, QuotaGap, QuotaUsage, ReserveResult, Turn, TurnRef, UsageStore } from "../../store/usage.ts";
import type { UsageTopic } from "./publishers.ts";
import { settleTurn, type TurnEnd, usageId, usageKey } from "./settle-turn.ts";
import { type ReserveInput, reservationOf, snapshotOf } from "./snapshot.ts";
import { createWatchdogs, type SweepOptions, type Swept, type Watchdog, type WatchdogOptions } from "./watchdog.ts";

export interface UsageOptions {
  /** Made with `topic` among its topics, on the same database and schema as `store`. */
  readonly mg: Pick<Makegood, "enqueue" | "store" | "events">;
  readonly store: UsageStore;
  readonly topic: UsageTopic;
  readonly clock?: Clock | undefined;
}

export interface FinalizeOptions extends At {
  /** The caller's transaction; absent: one of our own, tried again when its outcome is in doubt. */
  readonly tx?: Transaction | undefined;
  /**
   * Stores what the turn produced, in the same transaction: a completed turn has its content. If it cannot be stored, the turn
   * is finalised as failed instead, for the same usage. It may run again when the transaction does.
   */
  readonly storeContent?: ((tx: Transaction | undefined) => Promise<void>) | undefined;
}

/** `idleMs`: only if nothing was heard of the turn for so long. */
type Ending = FinalizeOptions & { readonly idleMs?: number };

export type Finalized =
  /** `won`: this call did it. Otherwise another one had, and nothing was changed. */
  { readonly kind: "final"; readonly won: boolean; readonly turn: Turn } | { readonly kind: "not_found" };

/** Degraded by one dead letter, because that is usage nobody is charged for, or when the oldest that waits is older than an hour. */
export interface UsageHealth {
  readonly status: "ok" | "degraded";
  readonly pending: number;
  readonly oldestPendingMs: number | null;
  readonly deadLetters: number;
  readonly oldestDeadLetterMs: number | null;
}

export interface Usage extends AsyncDisposable {
  readonly store: UsageStore;
  reserve(input: ReserveInput, options?: { readonly tx?: Transaction | undefined } & At): Promise<ReserveResult>;
  /** Call it now and then while a turn runs, more often than the watchdog's `idleMs`. False: the turn is over. */
  progress(ref: TurnRef): Promise<boolean>;
  finalize(end: TurnRef & TurnEnd, options?: FinalizeOptions): Promise<Finalized>;
  /** Starts the orphan watchdog in this process. */
  watch(options?: WatchdogOptions): Watchdog;
  /** One scan of the watchdog, now. */
  sweep(options?: SweepOptions): Promise<Swept>;
  turn(ref: TurnRef): Promise<Turn | null>;
  quota(of: { tenantId: string; userId?: string | null | undefined; period: string }): Promise<QuotaUsage[]>;
  verify(): Promise<QuotaGap[]>;
  health(): Promise<UsageHealth>;
  /** Stops the watchdogs and closes the usage store; the Makegood is the caller's. */
  close(): Promise<void>;
}

const LATE_MS = 3_600_000;

export async function createUsage({ mg, store, topic, clock = systemClock }: UsageOptions): Promise<Usage> {
  refuseApart(mg.store.traits, store);
  await store.open();
  const ids = createIds(clock);
  const refOf = ({ tenantId, turnId }: TurnRef): TurnRef => ({
    tenantId: usageId("tenantId", tenantId),
    turnId: usageId("turnId", turnId),
  });

  /** Tried again under one finalisation id: a repeat after a lost answer recognises its own work. */
  async function finalizeOnce(ref: TurnRef, end: TurnEnd, options: Ending): Promise<FinalizeResult> {
    const { tx, now, idleMs, storeContent } = options;
    const request = { ...ref, finalizationId: ids().replaceAll("-", ""), tx, now, idleMs };
    const settle = (turn: Turn) => settleTurn(turn, end, topic.counters);
    const hand = async (turn: Turn, inside: Transaction | undefined): Promise<string> => {
      await storeContent?.(inside);
      const how = { tx: inside, key: usageKey(turn), tenantId: turn.tenantId };
      return (await mg.enqueue(topic, snapshotOf(turn), how)).id;
    };
    const result = await persistently({ clock, random, once: tx !== undefined }, () => store.finalize(request, { settle, hand }));
    const ours = result.kind === "already" && result.turn.finalizationId === request.finalizationId;
    return ours ? { kind: "finalized", turn: result.turn } : result;
  }

  async function finalize(end: TurnRef & TurnEnd, options: FinalizeOptions = {}): Promise<Finalized> {
    const ref = refOf(end);
    let storing = false;
    const storeContent = async (tx: Transaction | undefined): Promise<void> => {
      storing = true;
      await options.storeContent?.(tx);
      storing = false;
    };
    try {
      return answer(await finalizeOnce(ref, end, { ...options, storeContent }));
    } catch (error) {
      // In the caller's transaction only the caller can begin again; a database that is away is no reason to call the turn failed.
      if (!storing || options.tx || isInDoubt(error) || end.outcome !== "completed") throw error;
      const failed: TurnEnd = { ...end, outcome: "failed", reason: "content_not_stored" };
      return answer(await finalizeOnce(ref, failed, { now: options.now }));
    }
  }

  const watchdogs = createWatchdogs({
    ...{ store: mg.store, usage: store, events: mg.events, clock, owner: `usage-${ids()}` },
    abort: async (ref, idleMs, { now }) =>
      (await finalizeOnce(ref, { outcome: "aborted", reason: "orphaned" }, { idleMs, now })).kind === "finalized",
  });

  async function close(): Promise<void> {
    await watchdogs.stopAll();
    await store.close();
  }

  return {
    store,
    reserve: async (input, options = {}) => {
      const reservation = reservationOf(input);
      return persistently({ clock, random, once: options.tx !== undefined }, async (failed) => {
        const result = await store.reserve(reservation, options);
        // An earlier try of this very call did commit, and only its answer was lost.
        return failed > 0 && result.kind === "exists" ? { kind: "reserved", turn: result.turn } : result;
      });
    },
    progress: async (ref) => store.progress(refOf(ref)),
    finalize,
    watch: watchdogs.watch,
    sweep: (options) => watchdogs.sweep(options),
    turn: async (ref) => store.turn(refOf(ref)),
    quota: async ({ tenantId, userId, period }) => {
      const user = userId == null ? null : usageId("userId", userId);
      return store.quota({ tenantId: usageId("tenantId", tenantId), userId: user, period });
    },
    verify: () => store.verify(),
    health: () => usageHealth(mg.store, topic.name),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function usageHealth(store: Store, topic: string): Promise<UsageHealth> {
  const counts = await store.counts();
  const { count: pending, oldestMs: oldestPendingMs } = tallyOf(counts, topic, ["pending"]);
  const { count: deadLetters, oldestMs: oldestDeadLetterMs } = tallyOf(counts, topic, ["dead"]);
  const degraded = deadLetters > 0 || (oldestPendingMs ?? 0) > LATE_MS;
  return { status: degraded ? "degraded" : "ok", pending, oldestPendingMs, deadLetters, oldestDeadLetterMs };
}

function answer(result: FinalizeResult): Finalized {
  if (result.kind === "not_found") return result;
  if (result.kind !== "busy") return { kind: "final", won: result.kind === "finalized", turn: result.turn };
  throw new MakegoodError("retry_transaction", "the turn changed while it was looked at: finalise it again");
}

/** A debit in one place and its message in another could part at any crash: both are in one database, or both in this process. */
function refuseApart(traits: Store["traits"], store: UsageStore): void {
  if (store.traits.transactions === traits.callerTransactions) return;
  const text = `usage is kept in ${store.traits.name} and messages in ${traits.name}: the usage preset needs both in one PostgreSQL`;
  throw new MakegoodError("invalid_config", text);
}
