/**
 * What says that two sets of messages are the same: for each topic, tenant and state their number, and the sum of a hash of each one's id and
 * payload. A sum and not a chain: the two sides read them in different orders.
 */
import { hash } from "node:crypto";
import type { MovableMessage } from "../store/movable.ts";
import type { RecordTable } from "../store/movable-records.ts";
import type { RecordSum, Sum } from "./format.ts";

const MODULUS = 2n ** 128n;
const HEX_DIGITS = 32;

/** A set of texts, in any order. */
class SetSum {
  count = 0;
  #sum = 0n;

  add(text: string): void {
    this.count++;
    this.#sum = (this.#sum + BigInt(`0x${hash("sha256", text, "hex").slice(0, HEX_DIGITS)}`)) % MODULUS;
  }

  get hash(): string {
    return this.#sum.toString(16).padStart(HEX_DIGITS, "0");
  }
}

const sumIn = (sums: Map<string, SetSum>, name: string): SetSum => {
  const sum = sums.get(name) ?? new SetSum();
  sums.set(name, sum);
  return sum;
};

export class Sums {
  readonly #parts = new Map<string, SetSum>();
  readonly #all = new SetSum();

  add({ id, payload, topic, tenantId, status, resolution }: MovableMessage): void {
    const one = `${id} ${hash("sha256", payload, "hex")}`;
    sumIn(this.#parts, JSON.stringify([topic, tenantId, resolution === null ? status : `${status} ${resolution}`])).add(one);
    this.#all.add(one);
  }

  get count(): number {
    return this.#all.count;
  }

  get hash(): string {
    return this.#all.hash;
  }

  /** In the order of their names. */
  list(): Sum[] {
    const parts = [...this.#parts].sort(([a], [b]) => (a < b ? -1 : 1));
    return parts.map(([name, { count, hash: sum }]) => {
      const [topic, tenant_id, status] = JSON.parse(name) as [string, string | null, string];
      return { topic, tenant_id, status, count, hash: sum };
    });
  }
}

/** Rows of records, by table, in the order in which the tables came. */
export class RecordSums {
  readonly #tables = new Map<RecordTable, SetSum>();

  begin(table: RecordTable): void {
    this.#tables.set(table, new SetSum());
  }

  add(table: RecordTable, row: string): void {
    this.#tables.get(table)?.add(row);
  }

  list(): RecordSum[] {
    return [...this.#tables].map(([{ kind, name: table }, { count, hash: sum }]) => ({ kind, table, count, hash: sum }));
  }
}
