/** A file of messages and records by batches, each of messages alone or of rows of one table, in the order of the file. */
import type { MovableMessage } from "../store/movable.ts";
import type { RecordTable } from "../store/movable-records.ts";
import { type Item, type ReadFile, readItems } from "./read-file.ts";

const BATCH = { items: 200, bytes: 4_194_304 };

export interface BatchUses {
  /** `done`: how many messages there were, with these. */
  readonly messages?: (batch: readonly MovableMessage[], done: number) => Promise<void>;
  /** Before its rows, and if it has none. */
  readonly table?: (table: RecordTable) => Promise<void>;
  readonly rows?: (table: RecordTable, rows: readonly string[]) => Promise<void>;
}

/** What the file says at its end must be what was checked before. */
export async function eachBatch(path: string, uses: BatchUses): Promise<ReadFile> {
  const items = readItems(path);
  let messages: MovableMessage[] = [];
  let rows: string[] = [];
  let table: RecordTable | undefined;
  let bytes = 0;
  let done = 0;
  const send = async () => {
    done += messages.length;
    if (messages.length > 0) await uses.messages?.(messages, done);
    if (table && rows.length > 0) await uses.rows?.(table, rows);
    [messages, rows, bytes] = [[], [], 0];
  };
  for (;;) {
    const next: IteratorResult<Item, ReadFile> = await items.next();
    if (next.done) {
      await send();
      return next.value;
    }
    const item = next.value;
    if (("message" in item ? rows : messages).length > 0) await send();
    if ("message" in item) {
      bytes += item.message.payload.length;
      messages.push(item.message);
    } else if ("table" in item && item.row === null) {
      await send();
      table = item.table;
      await uses.table?.(table);
    } else if ("table" in item && item.row !== null) {
      bytes += item.row.length;
      rows.push(item.row);
    }
    if (messages.length + rows.length >= BATCH.items || bytes >= BATCH.bytes) await send();
  }
}
