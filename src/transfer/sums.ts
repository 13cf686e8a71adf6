/**
 * What says that two sets of messages are the same: for each topic, tenant and state their number, and the sum of a hash of each one's id and
 * payload. A sum and not a chain: the two sides read them in different orders.
 */
import { hash } from "node:crypto";
import type { MovableMessage } from "../store/movable.ts";
import type { Sum } from "./format.ts";

const MODULUS = 2n ** 128n;
const HEX_DIGITS = 32;

const hexOf = (sum: bigint): string => sum.toString(16).padStart(HEX_DIGITS, "0");

export class Sums {
  readonly #parts = new Map<string, { count: number; sum: bigint }>();
  #count = 0;
  #sum = 0n;

  add({ id, payload, topic, tenantId, status, resolution }: MovableMessage): void {
    const one = BigInt(`0x${hash("sha256", `${id} ${hash("sha256", payload, "hex")}`, "hex").slice(0, HEX_DIGITS)}`);
    const name = JSON.stringify([topic, tenantId, resolution === null ? status : `${status} ${resolution}`]);
    const part = this.#parts.get(name) ?? { count: 0, sum: 0n };
    this.#parts.set(name, { count: part.count + 1, sum: (part.sum + one) % MODULUS });
    this.#count++;
    this.#sum = (this.#sum + one) % MODULUS;
  }

  get count(): number {
    return this.#count;
  }

  get hash(): string {
    return hexOf(this.#sum);
  }

  /** In the order of their names. */
  list(): Sum[] {
    const names = [...this.#parts.keys()].sort();
    return names.map((name) => {
      const [topic, tenant_id, status] = JSON.parse(name) as [string, string | null, string];
      const { count, sum } = this.#parts.get(name) as { count: number; sum: bigint };
      return { topic, tenant_id, status, count, hash: hexOf(sum) };
    });
  }
}
