/** Records of a store into the file: table by table, and once more at the end, when they must be what was written. */
import { MakegoodError } from "../message/errors.ts";
import { type MovableRecords, movableRecordsOf, type RecordKind, type RecordTable } from "../store/movable-records.ts";
import type { Store } from "../store/store.ts";
import type { RecordSum } from "./format.ts";
import { RecordSums } from "./sums.ts";
import type { FileWriter } from "./write-file.ts";

export class RecordWriter {
  readonly #records: MovableRecords;
  readonly #tables: readonly RecordTable[];
  readonly #all: boolean;
  readonly #writer: FileWriter;
  readonly #sums = new RecordSums();

  private constructor(records: MovableRecords, tables: readonly RecordTable[], all: boolean, writer: FileWriter) {
    this.#records = records;
    this.#tables = tables;
    this.#all = all;
    this.#writer = writer;
  }

  /** Null: the store has no home for them. */
  static async of(store: Store, kinds: readonly RecordKind[], all: boolean, writer: FileWriter): Promise<RecordWriter | null> {
    const records = movableRecordsOf(store);
    return records && new RecordWriter(records, await records.tables(kinds), all, writer);
  }

  /** `last`: those that belong to messages. */
  async write(which: "first" | "last"): Promise<void> {
    for (const table of this.#tables.filter(({ name }) => this.#records.isLast(name) === (which === "last"))) {
      this.#sums.begin(table);
      await this.#writer.add({ table });
      await this.#each(table, async (row) => {
        this.#sums.add(table, row);
        await this.#writer.add({ row });
      });
    }
  }

  sums(): RecordSum[] {
    return this.#sums.list();
  }

  async refuseChanged(): Promise<void> {
    const now = new RecordSums();
    for (const table of this.#tables) {
      now.begin(table);
      await this.#each(table, async (row) => now.add(table, row));
    }
    const after = new Map(now.list().map(({ table, hash }) => [table, hash]));
    const changed = this.sums().filter(({ table, hash }) => after.get(table) !== hash);
    if (changed.length === 0) return;
    const names = changed.map(({ table }) => table).join(", ");
    throw new MakegoodError(
      "action_refused",
      `${names} changed while they were read: stop every process that uses this store; --live copies all the same, for looking and not for moving`,
    );
  }

  async #each(table: RecordTable, use: (row: string) => Promise<void>): Promise<void> {
    for (let after: string | null = null; ; ) {
      const page = await this.#records.read(table, after, this.#all);
      for (const row of page.rows) await use(row);
      if (page.next === null) return;
      after = page.next;
    }
  }
}
