/**
 * The seeds' port over any Store: an entry is a message of the topic `billing/finalize`, its key the reservation; a claim is the store's claim of
 * that id, an attempt one settle, a terminal record a dead letter, an operation an intervention. So every command and address of the
 * kernel works on its entries (N11), and a worker may deliver them.
 */
import { isMakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import type { MessageView } from "../../../message/message.ts";
import type { Settlement } from "../../../message/settlement.ts";
import { checkSetting } from "../../../message/validate.ts";
import { type Clock, systemClock } from "../../../platform/clock.ts";
import { createIds } from "../../../platform/ids.ts";
import { once } from "../../../platform/once.ts";
import { type Random, systemRandom } from "../../../platform/random.ts";
import { tell } from "../../../platform/tell.ts";
import { createMemoryStore, type MemoryStoreOptions } from "../../memory/memory-store.ts";
import { type Tally, tallyOf, UNSETTLED } from "../../shared/tally.ts";
import type { Store } from "../../store.ts";
import type { AlarmKind, DLQAlarm, DLQPort, NewDLQEntry, PersistenceCheck } from "./dlq-store.ts";
import { checkPersistence, createUnreadable } from "./engine.ts";
import * as entries from "./entry.ts";
import { bound, createClaims, createObligations, DEFINITION, nextKey, readToken, writeToken } from "./obligations.ts";

export interface PortOptions {
  /** Default 5; stated for the caller, who decides when an entry is exhausted. */
  readonly maxRetries?: number | undefined;
  /** Default 50. */
  readonly batchLimit?: number | undefined;
  readonly onAlarm?: ((alarm: DLQAlarm) => void) | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  /** The store's time. Absent: the clock's. Ages and dates are counted from it; what is due is up to the store. */
  readonly nowMs?: (() => Promise<number>) | undefined;
  /** Absent: the store is opened and the topic declared. */
  readonly open?: (() => Promise<void>) | undefined;
  /** Who vouches that Redis persists, where its settings cannot be read; an answer of `failed` is not overruled. */
  readonly attestedBy?: string | undefined;
}

const WHAT: Readonly<Record<AlarmKind, string>> = {
  orphan: "its payload is gone; a note is in quarantine: find out what was owed",
  corrupt: "its payload cannot be read; it is in quarantine as it was",
  conflict: "a second obligation with another cost or tenant; the first stands, the second is in quarantine",
  closed: "a person has closed its terminal record; nothing was kept again",
};
const DELIVERED: Settlement = { kind: "delivered", outcome: "delivered" };

export interface MemoryDLQStoreOptions extends PortOptions, MemoryStoreOptions {}

/** The seeds' port in memory, and what the preset runs on without Redis (FIN-2). It never says that it is durable. */
export function createMemoryDLQStore(options: MemoryDLQStoreOptions = {}): DLQPort {
  return portOver(createMemoryStore(options), options);
}

/** The port over a store that the caller brings. */
export function portOver(store: Store, options: PortOptions): DLQPort {
  const { clock = systemClock, random = systemRandom, maxRetries = 5, batchLimit = 50 } = options;
  checkSetting("maxRetries", maxRetries, 1, LIMITS.attemptsMax);
  checkSetting("batchLimit", batchLimit, 1, LIMITS.pageMax);
  const nowMs = options.nowMs ?? (async () => clock.wallMs());
  const newId = createIds(clock, random);
  const owner = `dlq-port-${newId()}`;
  const kept = createObligations(store);
  const { claimOf, write, ended } = createClaims(store, owner, random, kept.find);
  const unreadable = createUnreadable(store, () => kept.all({ status: "pending" }), ring);
  let persistence: PersistenceCheck | null = null;
  let answers = false;

  function ring(kind: AlarmKind, reservation_id: string): void {
    tell(() => options.onAlarm?.({ kind, reservation_id, detail: WHAT[kind] }));
  }

  const open = once(async () => {
    if (options.open) return options.open();
    await store.open();
    if ((await store.topics.get(entries.TOPIC)) === null) await store.topics.put(DEFINITION, "code");
  });

  /** Whether the store answers is part of whether it is durable: every call finds out anew. Only a store that refuses us ends the call here. */
  async function heard<T>(call: () => Promise<T>): Promise<T> {
    let away: unknown = null;
    try {
      await open().catch((error) => {
        if (!isMakegoodError(error) || !error.retryable) throw error;
        away = error;
      });
      const reply = await call();
      answers = true;
      return reply;
    } catch (error) {
      if (!isMakegoodError(error) || error.code !== "invalid_message") answers = false;
      // The store did not answer when the topic was to be declared: that is what is wrong.
      throw isMakegoodError(error) && error.code === "unknown_topic" ? (away ?? error) : error;
    }
  }

  async function put(entry: NewDLQEntry, how: Parameters<DLQPort["put"]>[1] = {}): ReturnType<DLQPort["put"]> {
    entries.checkEntry(entry, how);
    const { reservation_id: reservationId } = entry;
    // Keys are per tenant: another tenant's is known if it was seen here, and otherwise to the receiver.
    const seen = kept.knows(reservationId) ? await kept.find(reservationId) : null;
    if (seen && seen.status !== "delivered") return against(seen, entry);
    // A date is a delay for the store's clock to add (DF-26).
    const dated = how.delayMs === undefined && entry.next_attempt_at !== undefined;
    const delayMs = dated ? entries.delayOf(new Date(entry.next_attempt_at as string), await nowMs()) : how.delayMs;
    for (let key = reservationId; ; ) {
      const message = entries.messageOf(entry, { ...how, delayMs, key, id: newId() });
      const [result] = await store.enqueue([message]);
      if (result?.kind === "accepted") {
        kept.learn(reservationId, message.id);
        return "created";
      }
      const first = result ? await store.get(result.id) : null;
      if (first && first.status !== "delivered") return against(first, entry);
      // FIN-23: it was settled, and comes again.
      if (first) key = nextKey(reservationId, first.id);
    }
  }

  async function against(first: MessageView, entry: NewDLQEntry): ReturnType<DLQPort["put"]> {
    const { reservation_id: reservationId } = entry;
    kept.learn(reservationId, first.id);
    const standing = entries.standsTo(first, entry);
    if (standing === "closed") ring("closed", reservationId);
    if (standing !== "other") return "exists";
    await store.enqueue([entries.conflictOf(entry, first.id, newId())]);
    ring("conflict", reservationId);
    return "conflict";
  }

  async function intervened(id: string, action: "replay" | "resolve" | "discard", actor: string, reason: string | null) {
    const view = await kept.find(id);
    if (view?.status !== "dead" || view.resolution !== "open") return false;
    return (await store.intervene({ id: view.id, action, actor, reason, revision: view.revision })).kind === "done";
  }

  async function entryOf(view: MessageView) {
    const fields = entries.fieldsOf(view.payload);
    const entry = entries.entryOf(view, await kept.historyOf(view), fields);
    kept.learn(entry.reservation_id, view.id);
    unreadable.note(view, fields);
    return entry;
  }

  const terminalOf = async (view: MessageView) => entries.terminalOf(view, await store.history(view.id));
  const tally = async (): Promise<Tally> => tallyOf(await store.counts(), entries.TOPIC, UNSETTLED);

  async function get(reservationId: string) {
    const view = await kept.find(reservationId);
    return view?.status === "pending" || view?.status === "processing" ? entryOf(view) : null;
  }

  const calls: Omit<DLQPort, "store" | "kind" | "durable" | "maxRetries" | "batchLimit" | "validatePersistence"> = {
    put,
    get,
    count: async () => (await tally()).count,
    async getReady(before) {
      const limitMs = before?.getTime() ?? Number.POSITIVE_INFINITY;
      const due = (await kept.due(batchLimit)).filter(({ nextAttemptAt }) => (nextAttemptAt?.getTime() ?? 0) <= limitMs);
      const ready = await Promise.all(due.map(entryOf));
      // FIN-25: the store has quarantined what it met and could not read; here that is named, and the rest goes on.
      await unreadable.read(false);
      return ready;
    },
    delete: async (reservationId, token) => (await write(reservationId, token ?? null, DELIVERED)) !== null,
    async oldestEntryAgeMs() {
      const { oldestMs } = await tally();
      const views = [...(await kept.all({ status: "pending" })), ...(await kept.all({ status: "processing" }))];
      const atMs = await nowMs();
      const given = views.flatMap(({ payload }) => entries.fieldsOf(payload).entry.created_at ?? []);
      return oldestMs === null ? null : Math.max(0, oldestMs, ...given.map((at) => atMs - Date.parse(at)));
    },
    async claimForReplay(reservationId, leaseMs = entries.DLQ_LIMITS.leaseMs) {
      const lease = entries.checkLease(leaseMs);
      const view = await kept.find(reservationId);
      const claimed = view && (await claimOf(view, lease, true));
      const now = claimed && (await store.get(claimed.id));
      if (!claimed || !now) return null;
      const history = await store.history(claimed.id);
      const token = writeToken(reservationId, claimed);
      return { token, entry: entries.entryOf(now, history), abandoned: entries.abandonedOf(history) };
    },
    async releaseClaim(reservationId, token) {
      return ended.delete(token) || (await write(reservationId, token, { kind: "release" })) !== null;
    },
    async extendClaim(reservationId, token, leaseMs) {
      const claim = ended.has(token) ? null : readToken(reservationId, token);
      return claim !== null && (await store.extend([claim.claim], entries.checkLease(leaseMs)))[0] === "extended";
    },
    async incrementAttempt(reservationId, token, next) {
      const delayMs = next instanceof Date ? entries.delayOf(next, await nowMs()) : entries.checkDelay(next.delayMs);
      const failed = { outcome: "retry", code: entries.PORT_CODES.failed, error: "the replay failed" } as const;
      const claim = await write(reservationId, token, { kind: "retry", delayMs, counted: true, suspicion: 0, ...failed });
      if (claim === null) return null;
      ended.set(token, claim);
      bound(ended);
      return (await get(reservationId))?.attempt_count ?? null;
    },
    async terminalDrop(reservationId, token, reason) {
      entries.checkText("reason", reason);
      const died = { outcome: "reject", code: entries.PORT_CODES.dropped, error: reason } as const;
      return (await write(reservationId, token, { kind: "dead", blocksOrder: false, ...died })) !== null;
    },
    async getTerminal(reservationId) {
      const view = await kept.find(reservationId);
      return view?.status === "dead" ? terminalOf(view) : null;
    },
    async listTerminal(limit = batchLimit, offset = 0) {
      return Promise.all(pageOf((await kept.dead()).terminal, limit, offset).map(terminalOf));
    },
    replayTerminal: (reservationId) => intervened(reservationId, "replay", owner, null),
    resolveTerminal: (reservationId, { as, actor, reason }) =>
      intervened(reservationId, as === "resolved" ? "resolve" : "discard", actor, reason),
    async listQuarantine(limit = batchLimit, offset = 0) {
      const conflicts = (await kept.dead()).conflicts.map(entries.quarantinedOf);
      return pageOf([...conflicts, ...(await unreadable.read(false)).found], limit, offset);
    },
    async gauges() {
      const [due, counts] = [await kept.dueCount(), await store.counts()];
      const [pending = 0, claimed = 0] = UNSETTLED.map((status) => tallyOf(counts, entries.TOPIC, [status]).count);
      const { terminal, conflicts } = await kept.dead(false);
      const quarantined = conflicts.length + (await unreadable.read(false)).found.length;
      return { due, waiting: Math.max(0, pending - due), claimed, terminal: terminal.length, quarantined };
    },
    async reconcile() {
      const before = unreadable.named();
      const { count: checked } = await tally();
      const { mended } = await unreadable.read(true);
      // What was quarantined now leaves its lane when it is due and listed: gauges() counts what is in lanes.
      await kept.due(LIMITS.pageMax);
      return { checked, mended, quarantined: unreadable.named() - before };
    },
  };

  return {
    ...guarded(calls, heard),
    store,
    kind: store.traits.name,
    get durable() {
      return answers && persistence?.state === "verified";
    },
    maxRetries,
    batchLimit,
    async validatePersistence() {
      persistence = await checkPersistence(store, options.attestedBy);
      if (Object.keys(persistence.checked).length > 0) answers = true;
      return persistence;
    },
  };
}

/** Every call opens the store first and tells whether it answered. */
function guarded<C extends object>(calls: C, heard: <T>(call: () => Promise<T>) => Promise<T>): C {
  const wrapped = Object.entries(calls).map(([name, call]) => [name, (...args: unknown[]) => heard(async () => call(...args))]);
  return Object.fromEntries(wrapped) as C;
}

function pageOf<T>(list: readonly T[], limit: number, offset: number): T[] {
  const from = Math.max(0, Math.floor(offset));
  return list.slice(from, from + Math.min(LIMITS.pageMax, Math.max(1, Math.floor(limit))));
}
