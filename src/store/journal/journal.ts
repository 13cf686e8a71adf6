/**
 * The journal on disk: append-only segments, callers at the same time share one fsync, entries leave only after a store above has them.
 * Every operation on files runs in one row, so that none sees half of another; a full or broken disk is a refusal, never a throw.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import { type Clock, inBackground, systemClock } from "../../platform/clock.ts";
import { type Loop, startLoop } from "../../platform/loop.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import type { Appended, Journal, JournalNote, JournalStats } from "../journal.ts";
import { entryJson, type HandedDown } from "../ladder/format/handed-down.ts";
import { createSealer, type Sealer } from "../ladder/format/seal.ts";
import type { AfterTry } from "../ladder/format/tried-below.ts";
import { isGone, leave, listSegments, makeDirectory, readKnown, segmentPath, touch, writeKnown } from "./directory.ts";
import { begunMark, endedMark, type Held, heldEntry } from "./held.ts";
import { notedOrdered, noteOrdered } from "./ordered-note.ts";
import { RECORD } from "./record.ts";
import { Segment } from "./segment.ts";

export interface JournalOptions {
  readonly directory: string;
  /** All files of the directory together; default 256 MiB. */
  readonly bytesMax?: number | undefined;
  /** Seals the payloads, at least 16 characters. */
  readonly sealKey?: string | undefined;
  /** After this long without a sign of life another process's segments are taken over. */
  readonly goneMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
  readonly note?: ((note: JournalNote) => void) | undefined;
}

const BYTES_MAX = 256 * 1_048_576;
const SEGMENT_BYTES = 8 * 1_048_576;
const GONE_MS = 15_000;
/** What one fsync takes with it at most. */
const BATCH_MAX = 1_000;

interface Place {
  readonly segment: Segment;
  readonly held: Held;
}

interface Waiter {
  readonly entry: HandedDown;
  readonly body: Buffer;
  readonly resolve: (appended: Appended) => void;
}

export function createJournal(options: JournalOptions): Journal {
  return new FileJournal(options);
}

class FileJournal implements Journal {
  readonly directory: string;
  readonly #bytesMax: number;
  readonly #segmentBytes: number;
  readonly #goneMs: number;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #sealer: Sealer | null;
  readonly #note: (note: JournalNote) => void;
  readonly #owner: string;
  readonly #segments = new Set<Segment>();
  readonly #pending: Waiter[] = [];
  #current: Segment | null = null;
  #number = 0;
  #pendingBytes = 0;
  #othersBytes = 0;
  #row: Promise<unknown> = Promise.resolve();
  #presence: Loop | null = null;
  #closed: boolean = false;
  #changes = 0;

  constructor(options: JournalOptions) {
    this.directory = options.directory;
    this.#bytesMax = options.bytesMax ?? BYTES_MAX;
    if (!(this.#bytesMax >= 4_096)) throw new MakegoodError("invalid_config", "the journal's bytesMax must be at least 4096");
    this.#segmentBytes = Math.min(SEGMENT_BYTES, Math.ceil(this.#bytesMax / 8));
    this.#goneMs = options.goneMs ?? GONE_MS;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
    this.#note = options.note ?? (() => {});
    this.#sealer = options.sealKey === undefined ? null : createSealer(options.sealKey, this.#random);
    this.#owner = `${process.pid}-${Buffer.from(this.#random.bytes(6)).toString("hex")}`;
  }

  async open(): Promise<void> {
    if (this.#presence) return;
    await makeDirectory(this.directory);
    await touch(this.directory, this.#owner, this.#clock.wallMs());
    this.#presence = startLoop({
      // Signs of life must not keep a process alive.
      clock: inBackground(this.#clock),
      step: async () => {
        await touch(this.directory, this.#owner, this.#clock.wallMs());
        return this.#goneMs / 3;
      },
      failed: () => this.#goneMs / 3,
    });
    await this.takeOver();
    // Made before it is needed: then the first entry costs one fsync and not three. A full disk shows itself when there is an entry.
    await this.#inRow(() => this.#writable()).catch(() => {});
  }

  changes(): number {
    return this.#changes;
  }

  append(entry: HandedDown): Promise<Appended> {
    if (this.#closed) return Promise.resolve({ kind: "refused", code: "journal_failed", error: "the journal is closed" });
    const body = Buffer.from(entryJson(entry, { sealer: this.#sealer }));
    const used = this.#bytes + this.#pendingBytes;
    if (used + body.length > this.#bytesMax) {
      const error = `the journal in ${this.directory} holds ${used} of at most ${this.#bytesMax} bytes`;
      return Promise.resolve({ kind: "refused", code: "journal_full", error });
    }
    this.#pendingBytes += body.length;
    return new Promise((resolve) => {
      this.#pending.push({ entry, body, resolve });
      if (this.#pending.length === 1) void this.#inRow(() => this.#flush());
    });
  }

  *list(): Generator<HandedDown> {
    for (const segment of this.#segments)
      for (const { entry, tried, reason } of segment.held.values())
        if (entry && reason === null) yield tried ? { ...entry, tried } : entry;
  }

  waiting(limit: number, skip: ReadonlySet<string> = new Set()): Promise<HandedDown[]> {
    const ids: string[] = [];
    for (const { message } of this.list()) {
      if (ids.length >= limit) break;
      if (!skip.has(message.id)) ids.push(message.id);
    }
    return this.read(ids);
  }

  read(ids: readonly string[]): Promise<HandedDown[]> {
    return this.#inRow(async () => {
      const found: HandedDown[] = [];
      for (const id of ids) {
        const place = this.#find(id);
        const entry = place && (await this.#read(place));
        if (entry) found.push(entry);
      }
      return found;
    });
  }

  begin(id: string, attempt: number): Promise<HandedDown | null> {
    return this.#inRow(async () => {
      const place = this.#find(id);
      if (!place || !(await this.#isOurs(place.segment))) return null;
      const entry = await this.#read(place);
      if (entry) await this.#mark(place.segment, RECORD.tried, begunMark(id, attempt, this.#clock.wallMs()));
      return entry;
    });
  }

  ended(id: string, after: AfterTry | null): Promise<void> {
    return this.#inRow(async () => {
      const place = this.#find(id);
      if (!place || !(await this.#isOurs(place.segment))) return;
      await this.#mark(place.segment, RECORD.tried, endedMark(id, after, this.#clock.wallMs()));
    });
  }

  done(ids: readonly string[]): Promise<void> {
    return this.#inRow(async () => {
      for (const segment of [...this.#segments]) {
        const mine = ids.filter((id) => segment.held.delete(id));
        if (mine.length === 0 || !(await this.#isOurs(segment))) continue;
        if (segment.empty) {
          await (segment === this.#current && !segment.broken
            ? segment.reset().catch(() => this.#drop(segment))
            : this.#drop(segment));
          continue;
        }
        // Not durable: after a crash they are offered again, and the store above says that it has them.
        await this.#mark(segment, RECORD.done, Buffer.from(JSON.stringify(mine)));
      }
    });
  }

  quarantine(id: string, reason: string): Promise<void> {
    return this.#inRow(async () => {
      for (const segment of [...this.#segments]) {
        const held = segment.held.get(id);
        if (!held || !(await this.#isOurs(segment))) continue;
        held.reason = reason;
        const body = Buffer.from(JSON.stringify({ id, reason }));
        if (!segment.broken) await segment.append([{ type: RECORD.quarantined, body }], true);
      }
    });
  }

  takeOver(): Promise<number> {
    return this.#inRow(async () => {
      let entries = 0;
      let others = 0;
      const gone = new Map<string, boolean>();
      for (const { path, owner, bytes } of await listSegments(this.directory)) {
        if (owner === this.#owner) continue;
        if (!gone.has(owner)) gone.set(owner, await isGone(this.directory, owner, this.#clock.wallMs(), this.#goneMs));
        const taken = gone.get(owner) ? await Segment.takeOver(path, this.#nextPath(), this.#sealer, this.#note) : undefined;
        if (!taken) {
          others += bytes;
          continue;
        }
        this.#segments.add(taken);
        entries += taken.held.size;
        this.#changes++;
        this.#note({ what: "taken_over", file: taken.path, bytes: taken.size, detail: `${taken.held.size} entries of ${owner}` });
        if (taken.empty && !taken.broken) await this.#drop(taken);
      }
      for (const [owner, isIt] of gone) if (isIt) await leave(this.directory, owner);
      this.#othersBytes = others;
      return entries;
    });
  }

  stats(): JournalStats {
    let waiting = 0;
    let quarantined = 0;
    let oldestAtMs: number | null = null;
    for (const segment of this.#segments) {
      for (const { entry, reason } of segment.held.values()) {
        if (reason !== null || !entry) quarantined++;
        else {
          waiting++;
          oldestAtMs = Math.min(oldestAtMs ?? entry.atMs, entry.atMs);
        }
      }
    }
    return { waiting, quarantined, bytes: this.#bytes, bytesMax: this.#bytesMax, oldestAtMs };
  }

  remember: Journal["remember"] = (known) => writeKnown(this.directory, this.#owner, known);
  remembered: Journal["remembered"] = () => readKnown(this.directory);
  noteOrdered: Journal["noteOrdered"] = (holds) => noteOrdered(this.directory, holds);
  notedOrdered: Journal["notedOrdered"] = () => notedOrdered(this.directory);

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#presence?.stop();
    await this.#inRow(async () => {
      for (const segment of [...this.#segments]) {
        if (segment.empty && !segment.broken) await this.#drop(segment);
        else await segment.close();
      }
    });
    await leave(this.directory, this.#owner);
  }

  get #bytes(): number {
    let sum = this.#othersBytes;
    for (const { size } of this.#segments) sum += size;
    return sum;
  }

  #nextPath(): string {
    return segmentPath(this.directory, this.#owner, ++this.#number);
  }

  /** One after the other, also when the one before failed. */
  #inRow<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#row.then(work);
    this.#row = result.catch(() => {});
    return result;
  }

  async #flush(): Promise<void> {
    const batch = this.#pending.splice(0, BATCH_MAX);
    if (batch.length === 0) return;
    const fresh = new Map<string, Waiter>();
    const standing = new Map<string, string>();
    let written: Appended = { kind: "kept" };
    try {
      for (const one of batch) {
        const { id } = one.entry.message;
        if (fresh.has(id) || standing.has(id)) continue;
        const payload = await this.#payloadOf(id);
        if (payload === null) fresh.set(id, one);
        else standing.set(id, payload);
      }
      if (fresh.size > 0) written = await this.#write([...fresh.values()]);
    } catch (error) {
      written = { kind: "refused", code: "journal_failed", error: errorText(error) };
    }
    for (const { entry, body, resolve } of batch) {
      const { id, payload } = entry.message;
      const [first, kept] = standing.has(id) ? [standing.get(id), true] : [fresh.get(id)?.entry.message.payload, false];
      this.#pendingBytes -= body.length;
      resolve(!kept && written.kind !== "kept" ? written : { kind: first === payload ? "kept" : "conflict" });
    }
    if (this.#pending.length > 0) void this.#inRow(() => this.#flush());
  }

  /** Of the entry that waits under this id; null: there is none. */
  async #payloadOf(id: string): Promise<string | null> {
    const place = this.#find(id);
    if (!place || !(await this.#isOurs(place.segment))) return null;
    return (await this.#read(place))?.message.payload ?? null;
  }

  async #write(batch: readonly Waiter[]): Promise<Appended> {
    const records = batch.map(({ body }) => ({ type: RECORD.entry, body }));
    // Twice at most: the second time only because the first file was taken over, which a new one cannot have been.
    for (let tries = 0; tries < 2; tries++) {
      const segment = await this.#writable();
      const written = await segment.append(records, true);
      if (written.kind === "written") {
        for (const [i, { entry }] of batch.entries()) {
          const { id } = entry.message;
          const offset = written.offsets[i] as number;
          const end = written.offsets[i + 1] ?? segment.size;
          segment.held.delete(id);
          segment.held.set(id, heldEntry(entry, offset, end - offset));
        }
        return { kind: "kept" };
      }
      this.#current = null;
      if (written.kind === "failed") return this.#refusal(segment, written.error);
      await this.#lose(segment);
    }
    return { kind: "refused", code: "journal_failed", error: `segments in ${this.directory} are taken away as they are made` };
  }

  #find(id: string): Place | null {
    for (const segment of this.#segments) {
      const held = segment.held.get(id);
      if (held?.entry && held.reason === null) return { segment, held };
    }
    return null;
  }

  async #read({ segment, held }: Place): Promise<HandedDown | null> {
    const read = await segment.read(held, this.#sealer);
    if ("entry" in read) return read.entry;
    held.reason = read.fault;
    this.#changes++;
    const { offset, bytes } = held;
    this.#note({ what: "unreadable_entry", file: segment.path, offset, bytes, detail: read.fault });
    return null;
  }

  /** Before each mark: where another process has taken the file over, ours would be written over theirs. */
  async #isOurs(segment: Segment): Promise<boolean> {
    if (await segment.hasItsName().catch(() => false)) return true;
    await this.#lose(segment);
    return false;
  }

  async #lose(segment: Segment): Promise<void> {
    const detail = "another process took it over; its entries are theirs now";
    this.#note({ what: "lost_segment", file: segment.path, detail });
    this.#changes++;
    this.#segments.delete(segment);
    if (this.#current === segment) this.#current = null;
    await segment.close();
  }

  /** Survives a crash of the process, not more. */
  async #mark(segment: Segment, type: typeof RECORD.tried | typeof RECORD.done, body: Buffer): Promise<void> {
    if (!segment.broken) await segment.append([{ type, body }], false);
  }

  async #refusal(segment: Segment, thrown: unknown): Promise<Appended> {
    const { code } = thrown as NodeJS.ErrnoException;
    if (segment.broken) this.#note({ what: "segment_abandoned", file: segment.path, detail: errorText(thrown) });
    if (segment.held.size === 0) await this.#drop(segment);
    const full = code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG";
    return { kind: "refused", code: full ? "journal_full" : "journal_failed", error: errorText(thrown) };
  }

  async #writable(): Promise<Segment> {
    if (this.#current && !this.#current.broken && this.#current.size < this.#segmentBytes) return this.#current;
    const salt = Buffer.from(this.#random.bytes(4)).readUInt32LE();
    this.#current = await Segment.create(this.#nextPath(), salt);
    this.#segments.add(this.#current);
    return this.#current;
  }

  async #drop(segment: Segment): Promise<void> {
    this.#segments.delete(segment);
    if (this.#current === segment) this.#current = null;
    await segment.remove();
  }
}
