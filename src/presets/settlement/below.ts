/**
 * What stands below the seeds' port while it cannot be used: a journal on disk, if there is a directory for one, and the memory of this
 * process, from which obligations are replayed meanwhile (DF-12). The journal is the copy that lasts: an entry leaves it when it is
 * settled or the store has it, and whoever starts next finds the rest. Nothing here throws, except open().
 */
import { errorText } from "../../message/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { HandedDown } from "../../store/handed-down.ts";
import { createJournal } from "../../store/journal/journal.ts";
import type { Journal } from "../../store/journal.ts";
import type { DLQOperations, DLQStore, PutOptions, PutResult } from "../../store/redis/dlq-port/dlq-store.ts";
import { createMemoryDLQStore } from "../../store/redis/dlq-port/memory-dlq-store.ts";
import { within } from "./deadline.ts";
import { fromHandedDown, toHandedDown } from "./journal-entry.ts";
import { journaledMemory } from "./journaled-memory.ts";
import type { KeptEntry, Lines } from "./lines.ts";
import { moveUp } from "./move-up.ts";

export interface BelowOptions {
  readonly journalDir?: string | undefined;
  readonly newId: () => string;
  /** How many may wait in memory; 10,000 unless said (I10). */
  readonly waitingMax?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly lines: Lines;
}

export type LowerRung = "journal" | "memory" | "log";

export interface Below {
  /** What waits here, as a port to replay from. */
  readonly memory: DLQStore & DLQOperations;
  /** Obligations that wait in memory and that the store above should have. */
  readonly size: number;
  /** Those of them that are to be replayed, and what is on disk alone because memory is full. */
  count(): Promise<number>;
  /** Whether everything that waits here would survive this process. */
  readonly whole: boolean;
  /** Whether what comes next would, as far as is known. */
  readonly lasting: boolean;
  /** Rejects when there is to be a journal and it cannot be used. */
  open(): Promise<void>;
  /** The first rung that takes it. Says where it is. */
  put(entry: KeptEntry, how: PutOptions): Promise<LowerRung>;
  /** Finds what processes that are gone have left in the journal. */
  find(): Promise<void>;
  /** Into the store, by put-if-absent, as far as it goes. */
  moveUp(store: DLQStore): Promise<void>;
  /** Takes out what was settled here. */
  tidy(): Promise<void>;
  close(): Promise<void>;
}

/** What a slow disk may take. */
const JOURNAL_WAIT_MS = 1_000;
const BATCH = 100;
const WAITING_MAX = 10_000;

export function createBelow(options: BelowOptions): Below {
  const { journalDir: directory, clock, random, lines, newId, waitingMax = WAITING_MAX } = options;
  const journal =
    directory === undefined ? null : createJournal({ directory, clock, random, note: (note) => lines.journalNote(note) });
  const plain = createMemoryDLQStore({ clock, random });
  const waiting = new Set<string>();
  const held = new Map<string, readonly string[]>();
  const memory = journal === null ? plain : journaledMemory({ memory: plain, journal, held, clock, lines });
  /** Entries in the journal that are nothing of ours. */
  const foreign = new Set<string>();
  const holds = (reservationId: string, id: string): void => {
    held.set(reservationId, [...new Set([...(held.get(reservationId) ?? []), id])]);
  };
  const isFull = (): boolean => waiting.size >= waitingMax;
  let usable = journal !== null;
  const opening = open();
  opening.catch((error) => {
    usable = false;
    lines.storeFailed("open the journal", errorText(error));
  });

  async function open(): Promise<void> {
    if (journal === null) return;
    await journal.open();
    await restoreAll(journal);
  }

  async function put(entry: KeptEntry, how: PutOptions): Promise<LowerRung> {
    const { reservation_id: id } = entry;
    let placed: PutResult;
    try {
      // With a journal it is found there as soon as there is room.
      if (isFull() && !waiting.has(id)) {
        if (await append(entry, how, null)) return "journal";
        throw new Error(`${waiting.size} wait in memory, which is all that may`);
      }
      placed = await memory.put(entry, how);
    } catch (error) {
      lines.storeFailed("put", errorText(error), entry);
      return "log";
    }
    if (placed === "conflict") lines.conflict(entry, "memory");
    else waiting.add(id);
    const kept = (placed === "exists" && held.has(id)) || (await append(entry, how, placed));
    return kept ? "journal" : "memory";
  }

  /** `placed`: what memory said to it; null: memory was not asked. */
  async function append(entry: KeptEntry, how: PutOptions, placed: PutResult | null): Promise<boolean> {
    if (journal === null) return false;
    try {
      await opening;
      const id = newId();
      const handedDown = toHandedDown(entry, how, id, clock.wallMs());
      const appended = await within(clock, JOURNAL_WAIT_MS, "the journal", journal.append(handedDown));
      if (appended.kind !== "kept") throw new Error("error" in appended ? appended.error : "its id is taken");
      usable = true;
      if (placed === "conflict") await journal.quarantine(id, CONTRADICTS);
      else if (placed !== null) holds(entry.reservation_id, id);
      return true;
    } catch (error) {
      usable = false;
      lines.degraded("journal", "memory", errorText(error));
      return false;
    }
  }

  /** What the journal holds and this process does not know yet. */
  async function restoreAll(from: Journal): Promise<void> {
    const known = new Set([...foreign, ...[...held.values()].flat()]);
    const found = [...from.list()].filter(({ id }) => !known.has(id)).map(({ id }) => id);
    for (let at = 0; at < found.length; at += BATCH) {
      for (const entry of await from.read(found.slice(at, at + BATCH))) {
        if (isFull()) return;
        await restore(entry, from);
      }
    }
  }

  async function restore(handedDown: HandedDown, from: Journal): Promise<void> {
    const { id, topic } = handedDown.message;
    const read = fromHandedDown(handedDown, clock.wallMs());
    if (read === null) {
      foreign.add(id);
      lines.storeFailed("read the journal", `entry ${id} of ${topic} is no obligation: it is left alone`);
      return;
    }
    const { entry, how } = read;
    const placed = await memory.put(entry, how).catch((error: unknown) => errorText(error));
    if (placed === "created" || placed === "exists") {
      waiting.add(entry.reservation_id);
      holds(entry.reservation_id, id);
      return;
    }
    if (placed === "conflict") lines.conflict(entry, "journal");
    await from.quarantine(id, placed === "conflict" ? CONTRADICTS : placed);
  }

  async function isOwed(reservationId: string): Promise<boolean> {
    if ((await memory.get(reservationId)) !== null) return true;
    return (await memory.getTerminal(reservationId))?.resolution === "open";
  }

  async function tidy(): Promise<void> {
    const over: string[] = [];
    for (const reservationId of new Set([...waiting, ...held.keys()])) {
      if (await isOwed(reservationId)) continue;
      waiting.delete(reservationId);
      over.push(...(held.get(reservationId) ?? []));
      held.delete(reservationId);
    }
    if (over.length === 0) return;
    // Should this fail, they are offered again after a restart, and the receiver or the store knows them.
    await journal?.done(over).catch((error) => lines.storeFailed("tidy the journal", errorText(error)));
  }

  return {
    memory,
    get size() {
      return waiting.size;
    },
    async count() {
      const known = foreign.size + [...held.values()].flat().length;
      return (await memory.count()) + Math.max(0, (journal?.stats().waiting ?? 0) - known);
    },
    get whole() {
      return [...waiting].every((id) => held.has(id));
    },
    get lasting() {
      return usable;
    },
    open: () => opening,
    put,
    async find() {
      if (journal === null) return;
      try {
        await opening;
        await journal.takeOver();
        await restoreAll(journal);
      } catch (error) {
        lines.storeFailed("read the journal", errorText(error));
      }
    },
    async moveUp(store) {
      await moveUp({ memory, below: waiting, store, lines });
      await tidy();
    },
    tidy,
    async close() {
      await opening.catch(() => undefined);
      await journal?.close();
    },
  };
}

const CONTRADICTS = "this reservation is kept with another cost or tenant; the first stands";
