/**
 * Records of a file into a store: put if absent, each under its own id. Ids of two stores mean different things, so a store that has records of
 * its own takes none of another; whether it has is known before anything is written.
 */
import { MakegoodError } from "../message/errors.ts";
import {
  type MovableRecords,
  movableRecordsOf,
  RECORD_KINDS,
  type RecordKind,
  type RecordTable,
  type Standing,
} from "../store/movable-records.ts";
import type { Store } from "../store/store.ts";
import { eachBatch } from "./batches.ts";
import { whyAtWork } from "./export-store.ts";
import type { Closing, RecordSum } from "./format.ts";
import { RecordSums } from "./sums.ts";

/** What became of the rows of a table; `hash`: of the file, `there`: of what is there under their keys. */
export type ImportedRecords = RecordSum & Standing & { readonly put: number; readonly there: string };

/** Proof of other rows, and the provenance of messages, which each message brings along as well. */
const COMES_WITH_OTHERS = /^(evidence_|provenance$)/;

type Sum = { -readonly [K in keyof Standing]: Standing[K] };

const kindsIn = (records: readonly RecordSum[], without: readonly RecordKind[]): RecordKind[] =>
  RECORD_KINDS.filter((kind) => !without.includes(kind) && records.some((one) => one.kind === kind && one.count > 0));

/** Refuses what has no home in this store, or whose home is taken. Null: there is nothing to do. */
export async function planRecords(store: Store, path: string, { records = [] }: Closing, without: readonly RecordKind[]) {
  const seam = movableRecordsOf(store);
  const says = ({ table }: RecordSum) => (seam ? !seam.isState(table) : !COMES_WITH_OTHERS.test(table));
  const kinds = kindsIn(records.filter(says), without);
  if (kinds.length === 0) return null;
  const leave = `--without ${kinds.join(",")} leaves it out`;
  const holds = `the file holds ${kinds.join(", ")}`;
  if (!seam) throw refused(`${holds}, and a ${store.traits.name} store has no home for it: import it into PostgreSQL; ${leave}`);
  const why = await whyAtWork(store);
  if (why !== null) throw refused(`${holds}, and ${why}: stop every process that uses this store first; ${leave}`);
  const plan = new RecordPlan(seam, seam.wanted(RECORD_KINDS.filter((kind) => !without.includes(kind))), records);
  await plan.refuseTaken(path, leave);
  return plan;
}

const refused = (why: string): MakegoodError => new MakegoodError("action_refused", `${why}; nothing was written`);

export class RecordPlan {
  readonly #seam: MovableRecords;
  readonly #wanted: ReadonlySet<string>;
  readonly #file: readonly RecordSum[];
  readonly #put = new Map<string, number>();

  constructor(seam: MovableRecords, wanted: ReadonlySet<string>, file: readonly RecordSum[]) {
    this.#seam = seam;
    this.#wanted = wanted;
    this.#file = file;
  }

  async prepare(table: RecordTable): Promise<void> {
    if (this.#wanted.has(table.name)) await this.#seam.prepare(table);
  }

  async put(table: RecordTable, rows: readonly string[]): Promise<void> {
    if (!this.#wanted.has(table.name)) return;
    const put = await this.#seam.put(table, rows);
    this.#put.set(table.name, (this.#put.get(table.name) ?? 0) + put);
  }

  /** A run that was cut off left some of the file's rows and nothing else; one that is made again after work went on finds all of them. */
  async refuseTaken(path: string, leave: string): Promise<void> {
    const sizes = new Map<string, number>();
    const check = async (table: RecordTable) => {
      if (!this.#wanted.has(table.name)) return;
      const newer = `the file's ${table.name} is not one that this release knows: update it`;
      if (!(await this.#seam.knows(table))) throw refused(newer);
      if (!this.#seam.isState(table.name) && !this.#seam.isLast(table.name)) sizes.set(table.name, await this.#seam.count(table));
    };
    const stands = await this.#stand(path, ({ name }) => (sizes.get(name) ?? 0) > 0, check);
    const missing = this.#file.some(({ table, count }) => {
      const { same, movedOn } = stands.get(table) ?? { same: 0, movedOn: 0 };
      return sizes.has(table) && same + movedOn < count;
    });
    for (const [table, size] of sizes) {
      const { same, movedOn, wrong } = stands.get(table) ?? { same: 0, movedOn: 0, wrong: 0 };
      const own = size - same - movedOn;
      if (wrong > 0 || (own > 0 && missing))
        throw refused(
          `the store has ${own} rows of its own in ${table}, which the file does not know: take an empty one; ${leave}`,
        );
    }
  }

  /** Every row of the file, looked up. */
  async compare(path: string): Promise<ImportedRecords[]> {
    const sums = new RecordSums();
    const stands = await this.#stand(
      path,
      ({ name }) => this.#wanted.has(name),
      async (table) => sums.begin(table),
      (table, row) => sums.add(table, row),
    );
    const there = new Map(sums.list().map(({ table, hash }) => [table, hash]));
    return this.#file
      .filter(({ table }) => this.#wanted.has(table))
      .map((one) => {
        const standing = stands.get(one.table) ?? { same: 0, movedOn: 0, absent: 0, wrong: 0 };
        return { ...one, ...standing, put: this.#put.get(one.table) ?? 0, there: there.get(one.table) ?? one.hash };
      });
  }

  async #stand(
    path: string,
    asks: (table: RecordTable) => boolean,
    table: (table: RecordTable) => Promise<void>,
    found: (table: RecordTable, row: string) => void = () => {},
  ): Promise<Map<string, Sum>> {
    const stands = new Map<string, Sum>();
    const rows = async (one: RecordTable, batch: readonly string[]) => {
      if (!asks(one)) return;
      const { there, ...standing } = await this.#seam.compare(one, batch);
      // Where something stands has been merged with what stood there.
      const now = this.#seam.isState(one.name) ? { ...standing, movedOn: standing.movedOn + standing.wrong, wrong: 0 } : standing;
      const sum = stands.get(one.name) ?? { same: 0, movedOn: 0, absent: 0, wrong: 0 };
      for (const name of Object.keys(sum) as (keyof Sum)[]) sum[name] += now[name];
      stands.set(one.name, sum);
      for (const row of there) found(one, row);
    };
    await eachBatch(path, { table, rows });
    return stands;
  }
}
