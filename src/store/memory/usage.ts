/**
 * The usage seam in memory: the oracle of the PostgreSQL one, for tests and for one process. Calls run one after the other, so a
 * finalisation that waits for its message to be taken sees no other in between; what failed leaves nothing behind.
 */
import { MakegoodError } from "../../message/errors.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { At } from "../store.ts";
import {
  type FinalizeRequest,
  type FinalizeResult,
  type FinalizeWork,
  type QuotaUsage,
  type Reservation,
  type ReserveResult,
  STATE_OF,
  type Turn,
  type TurnRef,
  type UsageStore,
} from "../usage.ts";
import { quotaGaps } from "./usage-gaps.ts";

export interface QuotaRow extends QuotaUsage {
  readonly tenantId: string;
  readonly userId: string | null;
}

interface Books {
  readonly turns: Map<string, Turn>;
  readonly quotas: Map<string, QuotaRow>;
}

const turnName = ({ tenantId, turnId }: TurnRef): string => `${tenantId}/${turnId}`;
const rowName = (of: { tenantId: string; userId: string | null; period: string }, bucket: string): string =>
  JSON.stringify([of.tenantId, of.userId, of.period, bucket]);

export function createMemoryUsageStore({ clock = systemClock }: { readonly clock?: Clock | undefined } = {}): UsageStore {
  const books: Books = { turns: new Map(), quotas: new Map() };
  const nowOf = (at?: At): Date => at?.now ?? new Date(clock.wallMs());
  let last: Promise<unknown> = Promise.resolve();
  let closed = false;

  /** One at a time, in the order of the calls. */
  function oneAtATime<T>(work: () => T | Promise<T>): Promise<T> {
    const result = last.then(() => {
      if (closed) throw new MakegoodError("closed", "the memory usage store is closed, and what it held is gone with it");
      return work();
    });
    last = result.catch(() => undefined);
    return result;
  }

  return {
    traits: { name: "memory", transactions: false },
    open: () => oneAtATime(() => undefined),
    async close() {
      await last;
      closed = true;
    },
    reserve: (reservation, options = {}) =>
      oneAtATime(() => {
        refuseTransaction(options.tx);
        return reserve(books, reservation, nowOf(options));
      }),
    progress: (ref, at) =>
      oneAtATime(() => {
        const turn = books.turns.get(turnName(ref));
        if (turn?.state !== "running") return false;
        books.turns.set(turnName(ref), { ...turn, progressAt: nowOf(at) });
        return true;
      }),
    finalize: (request, work) =>
      oneAtATime(() => {
        refuseTransaction(request.tx);
        return finalize(books, request, work, nowOf(request));
      }),
    orphans: ({ idleMs, limit, now }) =>
      oneAtATime(() =>
        [...books.turns.values()]
          .filter((turn) => turn.state === "running" && isIdle(turn, idleMs, nowOf({ now })))
          .sort((a, b) => a.progressAt.getTime() - b.progressAt.getTime())
          .slice(0, limit)
          .map(({ tenantId, turnId }) => ({ tenantId, turnId })),
      ),
    turn: (ref) => oneAtATime(() => books.turns.get(turnName(ref)) ?? null),
    quota: ({ tenantId, userId, period }) =>
      oneAtATime(() =>
        [...books.quotas.values()]
          .filter((row) => row.tenantId === tenantId && row.userId === userId && row.period === period)
          .map(({ tenantId: _tenant, userId: _user, ...usage }) => usage)
          .sort((a, b) => (a.bucket < b.bucket ? -1 : 1)),
      ),
    verify: () => oneAtATime(() => quotaGaps([...books.turns.values()], [...books.quotas.values()])),
  };
}

function refuseTransaction(tx: unknown): void {
  if (tx === undefined) return;
  throw new MakegoodError("not_a_transaction", "the memory usage store has no transactions to take part in: leave `tx` out");
}

const isIdle = (turn: Turn, idleMs: number, now: Date): boolean => turn.progressAt.getTime() <= now.getTime() - idleMs;

function reserve({ turns, quotas }: Books, reservation: Reservation, now: Date): ReserveResult {
  const known = turns.get(turnName(reservation));
  if (known) {
    if (known.requestId === reservation.requestId) return { kind: "exists", turn: known };
    throw new MakegoodError("key_conflict", `turn ${known.turnId} belongs to request ${known.requestId}, not to this one`, {
      turnId: known.turnId,
    });
  }
  const { tenantId, chatId, userId, period, reservedCredits } = reservation;
  const busy = [...turns.values()].find((t) => t.state === "running" && t.tenantId === tenantId && t.chatId === chatId);
  if (busy) return { kind: "chat_busy", turnId: busy.turnId };
  const rows = reservation.buckets.map(({ name, limitCredits }): QuotaRow => {
    const row = quotas.get(rowName(reservation, name));
    const counts = row ?? { reservedCredits: 0n, spentCredits: 0n, turnsRunning: 0, turnsSettled: 0 };
    return { tenantId, userId, period, bucket: name, ...counts, limitCredits };
  });
  for (const row of rows) {
    const usedCredits = row.reservedCredits + row.spentCredits;
    if (row.limitCredits !== null && usedCredits + reservedCredits > row.limitCredits) {
      return { kind: "quota_exceeded", bucket: row.bucket, limitCredits: row.limitCredits, usedCredits };
    }
  }
  for (const row of rows) {
    quotas.set(rowName(reservation, row.bucket), {
      ...row,
      reservedCredits: row.reservedCredits + reservedCredits,
      turnsRunning: row.turnsRunning + 1,
    });
  }
  const ending = { settlement: null, finalizedAt: null, finalizationId: null, messageId: null };
  const turn: Turn = { ...reservation, state: "running", startedAt: now, progressAt: now, ...ending };
  turns.set(turnName(turn), turn);
  return { kind: "reserved", turn };
}

async function finalize(books: Books, request: FinalizeRequest, work: FinalizeWork, now: Date): Promise<FinalizeResult> {
  const turn = books.turns.get(turnName(request));
  if (!turn) return { kind: "not_found" };
  if (turn.state !== "running") return { kind: "already", turn };
  if (request.idleMs !== undefined && !isIdle(turn, request.idleMs, now)) return { kind: "busy" };
  const settlement = work.settle(turn);
  const { finalizationId } = request;
  const final: Turn = { ...turn, state: STATE_OF[settlement.outcome], settlement, finalizedAt: now, finalizationId };
  const done: Turn = { ...final, messageId: await work.hand(final, undefined) };
  // The message is taken: from here on nothing can fail.
  books.turns.set(turnName(turn), done);
  for (const { name } of turn.buckets) {
    const row = books.quotas.get(rowName(turn, name)) as QuotaRow;
    books.quotas.set(rowName(turn, name), {
      ...row,
      reservedCredits: row.reservedCredits - turn.reservedCredits,
      spentCredits: row.spentCredits + settlement.credits,
      turnsRunning: row.turnsRunning - 1,
      turnsSettled: row.turnsSettled + 1,
    });
  }
  return { kind: "finalized", turn: done };
}
