/**
 * Reads a journal's directory without touching it, also while processes use it: every entry with where it stands, and everything that is
 * damaged. For people and for exports.
 */
import { readFile } from "node:fs/promises";
import { systemRandom } from "../../platform/random.ts";
import type { HandedDown } from "../ladder/format/handed-down.ts";
import { createSealer } from "../ladder/format/seal.ts";
import { contentsOf, entryOf } from "./contents.ts";
import { listSegments } from "./directory.ts";
import { type Damage, readSegment } from "./record.ts";

export interface ListedEntry {
  readonly id: string;
  readonly state: "waiting" | "quarantined" | "unreadable";
  /** Why it is in quarantine or cannot be read. */
  readonly reason: string | null;
  readonly entry: HandedDown | null;
  readonly file: string;
  readonly offset: number;
}

export interface JournalContents {
  readonly entries: ListedEntry[];
  readonly damage: (Damage & { readonly file: string })[];
  readonly bytes: number;
}

export async function readJournal(options: {
  readonly directory: string;
  readonly sealKey?: string | undefined;
}): Promise<JournalContents> {
  const sealer = options.sealKey === undefined ? null : createSealer(options.sealKey, systemRandom);
  const entries = new Map<string, ListedEntry>();
  const damage: JournalContents["damage"] = [];
  let bytes = 0;
  for (const { path: file } of await listSegments(options.directory)) {
    const content = await readFile(file).catch(() => null);
    // Gone since it was listed: a store has all of it, or another process has taken it over under another name.
    if (content === null) continue;
    bytes += content.length;
    const read = readSegment(content);
    damage.push(...read.damage.map((one) => ({ ...one, file })));
    const { held, unreadable } = contentsOf(read, sealer);
    const records = new Map(read.records.map((record) => [record.offset, record]));
    for (const { id, offset, reason, tried } of held.values()) {
      const record = records.get(offset);
      const made = record ? entryOf(record, sealer) : null;
      const state = reason === null ? (made?.ok ? "waiting" : "unreadable") : "quarantined";
      const why = reason ?? (made && !made.ok ? made.fault : null);
      const entry = made?.ok ? (tried ? { ...made.entry, tried } : made.entry) : null;
      entries.set(id, { id, state, reason: why, entry, file, offset });
    }
    for (const { offset, fault } of unreadable) {
      entries.set(`${file}:${offset}`, { id: "", state: "unreadable", reason: fault, entry: null, file, offset });
    }
  }
  return { entries: [...entries.values()], damage, bytes };
}
