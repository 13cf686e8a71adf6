/**
 * The journal of one place: what is on its disk outlives the process that wrote it. An attempt that was begun and never ended counts as lost
 * when the next process opens it. Now and then the disk refuses.
 */
import { payloadHash } from "../../src/message/validate.ts";
import type { Journal, KnownStore } from "../../src/store/journal.ts";
import type { HandedDown } from "../../src/store/ladder/format/handed-down.ts";
import { LOST, type TriedBelow, triedMore } from "../../src/store/ladder/format/tried-below.ts";
import type { SimProcess } from "./sim-process.ts";

interface OnDisk {
  readonly entry: HandedDown;
  tried: TriedBelow | undefined;
  /** When the attempt that is under way began, by its process's clock. */
  begunMs: number | null;
  quarantined: boolean;
}

export class Disk {
  readonly held = new Map<string, OnDisk>();
  known: KnownStore | null = null;
  ordered = false;

  get waiting(): OnDisk[] {
    return [...this.held.values()].filter(({ quarantined }) => !quarantined);
  }
}

const REFUSES = 0.05;

export function simJournal(disk: Disk, process: SimProcess): Journal {
  const { clock, net } = process;
  /** It happens now; a process that is dead by then never hears of it. */
  const soon = <T>(value: T): Promise<T> => new Promise((resolve) => process.later(net.between(0, 3), () => resolve(value)));
  const whole = ({ entry, tried }: OnDisk): HandedDown => (tried ? { ...entry, tried } : entry);
  const hashed = ({ message, ...rest }: HandedDown): HandedDown => ({
    ...rest,
    message: { ...message, payload: payloadHash(message.payload) },
  });
  return {
    directory: "simulated",
    async open() {
      for (const one of disk.held.values()) {
        if (one.begunMs === null) continue;
        const delayMs = one.tried?.delayMs ?? one.entry.message.delayMs;
        one.tried = triedMore(one.tried, { failed: LOST, delayMs, dead: false }, one.begunMs);
        one.begunMs = null;
      }
      await soon(null);
    },
    async append(entry) {
      const known = disk.held.get(entry.message.id);
      if (known) return soon({ kind: known.entry.message.payload === entry.message.payload ? "kept" : "conflict" } as const);
      if (net.chance(REFUSES))
        return soon({ kind: "refused", code: "journal_failed", error: "simulated: the disk is full" } as const);
      disk.held.set(entry.message.id, { entry, tried: entry.tried, begunMs: null, quarantined: false });
      return soon({ kind: "kept" } as const);
    },
    list: () => disk.waiting.map((one) => hashed(whole(one))),
    changes: () => 0,
    read: (ids) => soon(disk.waiting.filter(({ entry }) => ids.includes(entry.message.id)).map(whole)),
    waiting: (limit, skip) =>
      soon(
        disk.waiting
          .filter(({ entry }) => !skip?.has(entry.message.id))
          .slice(0, limit)
          .map(whole),
      ),
    async begin(id) {
      const one = disk.held.get(id);
      if (one) one.begunMs = clock.wallMs();
      return soon(one ? whole(one) : null);
    },
    async ended(id, after) {
      const one = disk.held.get(id);
      if (one) one.begunMs = null;
      if (one && after) one.tried = triedMore(one.tried, after, clock.wallMs());
      await soon(null);
    },
    async done(ids) {
      for (const id of ids) disk.held.delete(id);
      await soon(null);
    },
    async quarantine(id) {
      const one = disk.held.get(id);
      if (one) one.quarantined = true;
      await soon(null);
    },
    takeOver: () => soon(0),
    stats: () => ({
      waiting: disk.waiting.length,
      quarantined: disk.held.size - disk.waiting.length,
      bytes: 1_000 * disk.held.size,
      bytesMax: 1_000_000_000,
      oldestAtMs: disk.waiting[0]?.entry.atMs ?? null,
    }),
    async remember(known) {
      disk.known = known;
      await soon(null);
    },
    remembered: () => soon(disk.known),
    async noteOrdered(holds) {
      disk.ordered = holds;
      await soon(null);
    },
    notedOrdered: () => soon(disk.ordered),
    close: async () => {},
  };
}
