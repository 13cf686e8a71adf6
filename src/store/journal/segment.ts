/**
 * One file of the journal, open for appending: writes batches at its end, makes them durable with one fsync, and afterwards looks
 * whether the file still has its name. A process that takes a segment over renames it first and reads it then, so an entry is
 * either read there or written again here, and never lost between the two.
 */
import { type FileHandle, open, rename, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { errorText } from "../../message/errors.ts";
import { syncFolder } from "../../platform/sync-folder.ts";
import type { JournalNote } from "../journal.ts";
import type { HandedDown } from "../ladder/format/handed-down.ts";
import type { Sealer } from "../ladder/format/seal.ts";
import { contentsOf, entryOf } from "./contents.ts";
import type { Held } from "./held.ts";
import { HEADER_BYTES, headerBytes, RECORD, type RecordType, readSegment, recordBytes } from "./record.ts";

export type Written =
  | { readonly kind: "written" }
  | { readonly kind: "taken_away" }
  | { readonly kind: "failed"; readonly error: unknown };

type Note = (note: JournalNote) => void;

export interface NewRecord {
  readonly type: RecordType;
  readonly body: Buffer;
}

export class Segment {
  readonly path: string;
  readonly held: Map<string, Held>;
  readonly #file: FileHandle;
  readonly #salt: number;
  #seq: number;
  size: number;
  /** Nothing is appended any more: a write or an fsync failed, and what the disk has is not known. */
  broken: boolean = false;
  /** Something in it cannot be read and may have been an entry: the file stays for a person, also when all others have left. */
  damaged: boolean = false;

  private constructor(path: string, file: FileHandle, salt: number, seq: number, size: number, held: Map<string, Held>) {
    this.path = path;
    this.#file = file;
    this.#salt = salt;
    this.#seq = seq;
    this.size = size;
    this.held = held;
  }

  static async create(path: string, salt: number): Promise<Segment> {
    const file = await open(path, "wx+", 0o600);
    try {
      await writeAll(file, headerBytes(salt), 0);
      await file.sync();
      await syncFolder(dirname(path));
    } catch (error) {
      await file.close();
      await unlink(path).catch(() => {});
      throw error;
    }
    return new Segment(path, file, salt, 0, HEADER_BYTES, new Map());
  }

  /** Takes a segment over under a name of our own; undefined when another process was first. */
  static async takeOver(from: string, path: string, sealer: Sealer | null, note: Note): Promise<Segment | undefined> {
    try {
      await rename(from, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    await syncFolder(dirname(path));
    const file = await open(path, "r+");
    const read = readSegment(await file.readFile());
    for (const { kind, offset, bytes } of read.damage) note({ what: kind, file: path, offset, bytes });
    const { held, unreadable, lastSeq } = contentsOf(read, sealer);
    for (const { offset, bytes, fault } of [...unreadable, ...held.values()])
      if (fault !== null) note({ what: "unreadable_entry", file: path, offset, bytes, detail: fault });
    const segment = new Segment(path, file, read.salt ?? 0, lastSeq, read.end, held);
    segment.damaged = unreadable.length > 0 || read.damage.some(({ kind }) => kind === "corrupt_record");
    if (read.salt === null) segment.broken = true;
    // The torn tail is no entry that was promised: no caller was told that it is kept.
    else await file.truncate(read.end);
    return segment;
  }

  /** Nothing in it is needed any more. */
  get empty(): boolean {
    return this.held.size === 0 && !this.damaged;
  }

  /** Where each record will stand is known before it is written. */
  async append(records: readonly NewRecord[], durable: boolean): Promise<Written & { readonly offsets: number[] }> {
    const parts = records.map(({ type, body }) => recordBytes(this.#salt, ++this.#seq, type, body));
    const offsets: number[] = [];
    let at = this.size;
    for (const part of parts) {
      offsets.push(at);
      at += part.length;
    }
    let wrote = false;
    try {
      await writeAll(this.#file, Buffer.concat(parts), this.size);
      wrote = true;
      if (durable) await this.#file.datasync();
    } catch (error) {
      // A write that came short is undone; after a failed fsync it is not known what the disk has, so this file is left alone.
      const undone =
        !wrote &&
        (await this.#file.truncate(this.size).then(
          () => true,
          () => false,
        ));
      if (!undone) this.broken = true;
      return { kind: "failed", error, offsets };
    }
    this.size = at;
    if (durable && !(await this.hasItsName())) return { kind: "taken_away", offsets };
    return { kind: "written", offsets };
  }

  async read({ offset, bytes, tried }: Held, sealer: Sealer | null): Promise<{ entry: HandedDown } | { fault: string }> {
    const frame = Buffer.alloc(bytes);
    try {
      const { bytesRead } = await this.#file.read(frame, 0, bytes, offset);
      // Read again with the checksum: a disk may lose what it had when the segment was opened.
      const record = bytesRead === bytes ? readSegment(Buffer.concat([headerBytes(this.#salt), frame])).records[0] : undefined;
      if (record?.type !== RECORD.entry) return { fault: "its bytes are damaged" };
      const read = entryOf(record, sealer);
      if (!read.ok) return { fault: read.fault };
      return { entry: tried ? { ...read.entry, tried } : read.entry };
    } catch (error) {
      return { fault: errorText(error) };
    }
  }

  /** Every entry of it is in a store above: begins anew, without the cost of a new file. */
  async reset(): Promise<void> {
    await this.#file.truncate(HEADER_BYTES);
    this.size = HEADER_BYTES;
  }

  async remove(): Promise<void> {
    await this.close();
    await unlink(this.path).catch(() => {});
  }

  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }

  /** False: another process has taken it over, and everything in it. */
  async hasItsName(): Promise<boolean> {
    const [mine, named] = await Promise.all([this.#file.stat(), stat(this.path).catch(() => null)]);
    return named !== null && named.ino === mine.ino && named.dev === mine.dev;
  }
}

/** A short write is not an error to the system: the rest is written, and then the reason comes out. */
async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    if (bytesWritten === 0) throw Object.assign(new Error("nothing more could be written"), { code: "ENOSPC" });
    done += bytesWritten;
  }
}
