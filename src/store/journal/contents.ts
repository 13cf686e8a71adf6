/**
 * What the records of a segment add up to: the entries that still wait, those in quarantine, and what could not be read. Entries that
 * cannot be read are kept where they are and named, never dropped.
 */
import { type EntryRead, readEntry } from "../ladder/format/handed-down.ts";
import type { Sealer } from "../ladder/format/seal.ts";
import { countLost, foldMark, type Held, heldValue } from "./held.ts";
import { type JournalRecord, RECORD, type SegmentRead } from "./record.ts";

export interface Contents {
  /** By id, oldest first. */
  readonly held: Map<string, Held>;
  readonly unreadable: { readonly offset: number; readonly bytes: number; readonly fault: string }[];
  readonly lastSeq: number;
}

export function contentsOf({ records }: SegmentRead, sealer: Sealer | null): Contents {
  const held = new Map<string, Held>();
  const unreadable: Contents["unreadable"] = [];
  let lastSeq = 0;
  for (const record of records) {
    lastSeq = Math.max(lastSeq, record.seq);
    const value = jsonOf(record.body);
    const { offset, bytes } = record;
    if (record.type === RECORD.done) for (const id of Array.isArray(value) ? value : []) held.delete(String(id));
    else if (record.type === RECORD.quarantined) {
      const { id, reason } = (value ?? {}) as { id?: unknown; reason?: unknown };
      const one = held.get(String(id));
      if (one) one.reason = String(reason);
    } else if (record.type === RECORD.tried) {
      const one = held.get(String((value as { id?: unknown } | null)?.id));
      if (one) foldMark(one, value as object);
    } else {
      const one = heldValue(value, sealer, offset, bytes);
      if (one) held.set(one.id, one);
      else unreadable.push({ offset, bytes, fault: "it is not an entry" });
    }
  }
  for (const one of held.values()) countLost(one);
  return { held, unreadable, lastSeq };
}

export function entryOf({ body }: Pick<JournalRecord, "body">, sealer: Sealer | null): EntryRead {
  return readEntry(jsonOf(body), sealer);
}

function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
}
