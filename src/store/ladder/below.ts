/**
 * The rungs below the stores, as one small store (DF-12): what only memory has and what the journal of this process keeps are messages of the memory
 * engine, and the journal is its log. The engine knows of each payload only its hash; the payload itself lies where the message does, and is
 * read when it is claimed. Leases need not be taken back here: this process holds them all.
 */
import { conclude, released } from "../../message/conclude.ts";
import { LIMITS } from "../../message/limits.ts";
import type { Accepted, ClaimedMessage, NewMessage } from "../../message/message.ts";
import type { Settle, Settlement } from "../../message/settlement.ts";
import { payloadHash } from "../../message/validate.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { PutDown, RungName } from "../fallback.ts";
import type { Appended, Journal } from "../journal.ts";
import { claim, extend } from "../memory/claim.ts";
import { accept, findKnown } from "../memory/enqueue.ts";
import { holdsKey, listLanes, unpark } from "../memory/lanes.ts";
import { history, view } from "../memory/read.ts";
import { settle } from "../memory/settle.ts";
import { createState, hint, type State, type Stored } from "../memory/state.ts";
import { forget } from "../memory/upkeep.ts";
import type { ClaimRequest, ListFilter, Page, SettleResult, WorkStore } from "../store.ts";
import type { HandedDown } from "./format/handed-down.ts";
import { afterTry, madeAttempt, type TriedBelow, triedIn } from "./format/tried-below.ts";
import type { Source } from "./move-up.ts";

export interface BelowOptions {
  readonly journal?: Journal | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** An attempt has ended: what is left may be moved up. */
  readonly ended: () => void;
}

type Place = Extract<RungName, "journal" | "memory">;

export interface Below extends WorkStore {
  /** Into the journal. */
  put(entry: HandedDown, to: Journal): Promise<PutDown>;
  /** Into memory, bounded; `say` runs before it is kept, because nothing else will have it if the process ends. */
  keep(entry: HandedDown, say: () => void): PutDown;
  /** What only memory has goes into the journal, until that refuses. True: it took all of it. */
  improve(): Promise<boolean>;
  /** Takes in what the journal got from processes that are gone, and lets go of what others took from it. */
  sync(): void;
  /** Looks as if something had come. */
  came(): void;
  holdsKey(message: NewMessage): boolean;
  placeOf(id: string): Place;
  /** What the way up works on: its claims are no attempts. */
  readonly source: Source;
  readonly inMemory: number;
  /** Of what only memory has. */
  readonly oldestAtMs: number | null;
}

const ENTRIES_MAX = 10_000;
const BYTES_MAX = 64 * 1_048_576;
/** What does not count must not be tried without a pause either. */
const UNCOUNTED_MS = 1_000;

export function createBelow({ journal, clock, random, ended }: BelowOptions): Below {
  const state = createState(clock, random);
  /** What only memory has, oldest first. */
  const memory = new Map<string, HandedDown>();
  let bytes = 0;
  let synced = -1;
  let scan: { readonly cursor: string; readonly rows: Iterator<Stored> } | null = null;
  const placeOf = (id: string): Place => (memory.has(id) ? "memory" : "journal");

  /** `message`: with the hash instead of its payload. */
  function add({ message, atMs, tried }: HandedDown): Accepted | undefined {
    const fresh = !state.messages.has(message.id);
    const [accepted] = accept(state, [message], { now: new Date(atMs) });
    if (!fresh || accepted?.id !== message.id) return accepted;
    const { directTry, delayMs } = message;
    // A direct try has failed, too: it waits apart from those that never did.
    if (tried || directTry) replay(state, message.id, tried ?? { failed: [], atMs, delayMs, dead: false });
    return accepted;
  }

  function leaveMemory(id: string): void {
    const entry = memory.get(id);
    if (entry && memory.delete(id)) bytes -= sizeOf(entry);
  }

  function drop(id: string): void {
    const stored = state.messages.get(id);
    if (!stored || stored.status === "processing") return;
    if (stored.status === "pending") unpark(state, stored);
    forget(state, stored);
    leaveMemory(id);
  }

  /**
   * A store above has them, or the receiver. Removed only now: until then a crash leaves them to the next process, with the same
   * key.
   */
  async function done(ids: readonly string[]): Promise<void> {
    // What could not be written costs a repeat with the same key, never the entry.
    if (ids.length > 0) await journal?.done(ids).catch(() => {});
    for (const id of ids) drop(id);
  }

  /** What stands below under its id or its key already; null: nothing. */
  function standing(message: NewMessage): PutDown | null {
    const known = findKnown(state, message);
    if (known === null) return null;
    const rung = placeOf(known.id);
    return known.same ? stored(rung, known.id, known.id !== message.id) : { kind: "conflict", rung, id: known.id };
  }

  async function toJournal(id: string, to: Journal): Promise<Appended> {
    const [entry, kept] = [memory.get(id), state.messages.get(id)];
    if (!entry || !kept) return { kind: "kept" };
    const { message, atMs } = entry;
    const waits = { ...message, delayMs: Math.min(LIMITS.delayMsMax, Math.max(0, kept.dueMs - atMs)) };
    const appended = await to.append({ message: waits, atMs, tried: triedOf(kept, clock.wallMs()) });
    if (appended.kind !== "kept") return appended;
    if (memory.has(id)) leaveMemory(id);
    else await to.done([id]);
    return appended;
  }

  /** With what the engine does not have of them. Those that are not ours any more, or cannot be read, are left out. */
  async function whole<T extends { readonly id: string }>(ones: readonly T[], read: Read<T>): Promise<T[]> {
    const logged = ones.filter(({ id }) => !memory.has(id));
    const found = journal && logged.length > 0 ? await read(journal, logged) : [];
    const entries = new Map(found.flatMap((entry) => (entry ? [[entry.message.id, entry]] : [])));
    return ones.flatMap((one) => {
      const { payload, key } = (memory.get(one.id) ?? entries.get(one.id))?.message ?? {};
      return payload === undefined ? [] : [{ ...one, payload, key }];
    });
  }

  async function take(request: ClaimRequest, begins: boolean): Promise<ClaimedMessage[]> {
    const claimed = claim(state, request, !begins);
    if (claimed.length === 0) return [];
    const taken = await whole(claimed, begins ? begin : readAll).catch((error) => {
      settle(state, claimed.map(released));
      throw error;
    });
    const ids = new Set(taken.map(({ id }) => id));
    const gone = claimed.filter(({ id }) => !ids.has(id));
    settle(state, gone.map(released));
    for (const { id } of gone) drop(id);
    return taken;
  }

  /** `begun`: the log says that attempts began, and has to say how they ended. */
  async function write(settles: readonly Settle[], begun: boolean): Promise<SettleResult[]> {
    const written = settles.map((one) => ({ ...one, settlement: here(one.settlement) }));
    const results = settle(state, written);
    const settled = written.filter((_, i) => results[i] === "settled");
    for (const { id, settlement, durationMs } of settled) {
      // There is no end to those that do not count.
      if (settlement.kind === "retry" && !settlement.counted) state.messages.get(id)?.history.pop();
      if (!begun || settlement.kind === "delivered" || memory.has(id)) continue;
      await journal?.ended(id, afterTry(settlement, durationMs)).catch(() => {});
    }
    await done(settled.filter(({ settlement }) => settlement.kind === "delivered").map(({ id }) => id));
    if (begun) ended();
    return results;
  }

  /** Oldest first, unlike a store's own: nothing that comes meanwhile is left out, and no page costs more than itself. */
  async function list({ status, limit, cursor, payload = true }: ListFilter): Promise<Page> {
    const rows = cursor !== undefined && scan?.cursor === cursor ? scan.rows : state.messages.values();
    const found: Stored[] = [];
    for (let row = rows.next(); !row.done; row = rows.next()) {
      if (row.value.status === status) found.push(row.value);
      if (found.length >= limit) break;
    }
    const nextCursor = found.length < limit ? null : (found.at(-1)?.message.id ?? null);
    scan = nextCursor === null ? null : { cursor: nextCursor, rows };
    const data = found.map(view);
    return { data: payload ? await whole(data, readAll) : data, nextCursor };
  }

  function sync(): void {
    if (!journal || journal.changes() === synced) return;
    synced = journal.changes();
    const there = new Set<string>();
    for (const entry of journal.list()) {
      const { message } = entry;
      there.add(message.id);
      // Others may have kept its key, too: which of them counts is for the store above to say, so here it goes without.
      if (!state.messages.has(message.id) && add(entry)?.id !== message.id) add({ ...entry, message: { ...message, key: null } });
    }
    for (const { message, status } of state.messages.values()) {
      if (memory.has(message.id) || there.has(message.id)) continue;
      if (status === "processing") synced = -1;
      else drop(message.id);
    }
  }

  return {
    async put(entry, to) {
      const message = hashed(entry.message);
      const before = standing(message);
      if (before) return before.kind === "stored" && before.rung === "memory" ? promoted(before, to) : before;
      const appended = await to.append(entry);
      if (appended.kind === "refused") return appended;
      if (appended.kind === "conflict") return { kind: "conflict", rung: "journal", id: message.id };
      const accepted = add({ ...entry, message });
      if (!accepted || accepted.id === message.id) return stored("journal", message.id, false);
      // Another one with its key was kept in the same moment, and was first.
      await to.done([message.id]);
      return accepted.kind === "conflict"
        ? { kind: "conflict", rung: "journal", id: accepted.id }
        : stored(placeOf(accepted.id), accepted.id, true);
    },
    keep(entry, say) {
      const message = hashed(entry.message);
      const before = standing(message);
      if (before) return before;
      say();
      if (memory.size >= ENTRIES_MAX || bytes + sizeOf(entry) > BYTES_MAX)
        return { kind: "refused", code: "store_full", error: "memory: full" };
      memory.set(message.id, entry);
      bytes += sizeOf(entry);
      add({ ...entry, message });
      return stored("memory", message.id, false);
    },
    async improve() {
      let took = false;
      for (const id of journal ? [...memory.keys()] : []) {
        if (state.messages.get(id)?.status === "processing") continue;
        if (journal && (await toJournal(id, journal)).kind === "refused") return false;
        took = true;
      }
      return took;
    },
    sync,
    came: () => hint(state, { kind: "work", lane: null }),
    holdsKey: (message) => holdsKey(state, message),
    placeOf,
    source: {
      own: true,
      list,
      claim: (request) => take(request, false),
      settle: (settles) => write(settles, false),
      history: async (id) => history(state, id),
      intervene: ({ id }) => done([id]),
      async quarantine(id, reason) {
        // Of what only memory has, the line is in the log.
        await journal?.quarantine(id, reason);
        drop(id);
      },
    },
    get inMemory() {
      return memory.size;
    },
    get oldestAtMs() {
      for (const { atMs } of memory.values()) return atMs;
      return null;
    },
    lanes: async (which) => listLanes(state, which),
    claim: (request) => take(request, true),
    extend: async (claims, leaseMs) => extend(state, claims, leaseMs),
    settle: (settles) => write(settles, true),
    wake(listener) {
      const heard: typeof listener = (what) => listener(what);
      state.listeners.add(heard);
      return () => state.listeners.delete(heard);
    },
    idle: async () => {},
  };

  /** Only memory had it until now: the journal has to take that one. */
  async function promoted({ id, duplicate, ...before }: Kept, to: Journal): Promise<PutDown> {
    const appended = await toJournal(id, to);
    if (appended.kind === "refused") return appended;
    return appended.kind === "kept" ? stored("journal", id, duplicate) : { ...before, id, duplicate };
  }
}

type Read<T> = (journal: Journal, ones: readonly T[]) => Promise<(HandedDown | null)[]>;

const readAll: Read<{ readonly id: string }> = (journal, ones) => journal.read(ones.map(({ id }) => id));

const begin: Read<ClaimedMessage> = (journal, ones) => Promise.all(ones.map(({ id, attempt }) => journal.begin(id, attempt)));

const hashed = (message: NewMessage): NewMessage => ({ ...message, payload: payloadHash(message.payload) });

const sizeOf = ({ message }: HandedDown): number => 2 * message.payload.length + 512;

type Kept = Extract<PutDown, { kind: "stored" }>;

function stored(rung: Place, id: string, duplicate: boolean): Kept {
  return { kind: "stored", rung, survives: rung === "journal" ? "power-loss" : "nothing", id, duplicate };
}

/** Only a store can hold; here it waits for one. */
function here(settlement: Settlement): Settlement {
  if (settlement.kind === "hold") {
    const { counted, outcome, code, error } = settlement;
    return { kind: "retry", delayMs: UNCOUNTED_MS, counted, suspicion: 0, retried: true, outcome, code, error };
  }
  if (settlement.kind !== "retry" || settlement.counted) return settlement;
  return { ...settlement, delayMs: Math.max(settlement.delayMs, UNCOUNTED_MS) };
}

/** What the log says of attempts, in the engine; those that did not count have left their wait only. */
function replay(state: State, id: string, tried: TriedBelow): void {
  const now = new Date(tried.atMs);
  const { failed, delayMs: waitMs } = tried;
  const uncounted = { ...NOTHING_SAID, counted: false, dead: false, waitMs } as const;
  const made = failed.length > 0 ? failed.map((_, i) => madeAttempt(tried, i, 0) ?? uncounted) : [uncounted];
  for (const attempt of made) {
    const [one] = claim(state, { owner: "", leaseMs: 1, lanes: [], ids: [id], now });
    if (!one) return;
    settle(state, [conclude(one, { kind: "made", attempt }, undefined, 0, attempt.durationMs)], { now });
    if (!attempt.counted) state.messages.get(id)?.history.pop();
  }
}

const NOTHING_SAID = { outcome: "retry", code: null, error: null, durationMs: null } as const;

function triedOf({ history: attempts, status, dueMs }: Stored, nowMs: number): TriedBelow | undefined {
  return triedIn(attempts, status === "dead", nowMs, Math.max(0, dueMs - nowMs));
}
