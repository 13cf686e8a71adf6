/**
 * Which ordering keys have something below the primary store, as far as this process knows: in its own journal and memory, and in the secondary
 * store as of its last answer. Whatever comes later for such a key goes below as well, and what lies there goes up in the order in which it came.
 */
import type { NewMessage } from "../../message/message.ts";
import type { WaitingBelow } from "../fallback.ts";

type Keyed = Pick<NewMessage, "id" | "topic" | "orderingKey">;

export class KeysBelow {
  /** Key → ids in journal and memory, oldest first. */
  readonly #ids = new Map<string, Set<string>>();
  readonly #keys = new Map<string, string>();
  /** Keys of the secondary store, or whole topics where those are too many → the count of puts when that was last seen. */
  readonly #secondary = new Map<string, number>();
  #puts = 0;

  get size(): number {
    return this.#keys.size;
  }

  /** Taken before the secondary store is asked: what is put there later is newer than its answer. */
  get mark(): number {
    return this.#puts;
  }

  /** Something of its key lies in the journal or in memory. */
  heldHere(message: Keyed): boolean {
    return this.#ids.size > 0 && message.orderingKey !== null && this.#ids.has(keyOf(message));
  }

  /** Something of its key may lie in the secondary store. */
  heldAside(message: Keyed): boolean {
    if (this.#secondary.size === 0 || message.orderingKey === null) return false;
    return this.#secondary.has(message.topic) || this.#secondary.has(keyOf(message));
  }

  holds(message: Keyed): boolean {
    return this.heldHere(message) || this.heldAside(message);
  }

  came(message: Keyed): void {
    if (message.orderingKey === null || this.#keys.has(message.id)) return;
    const key = keyOf(message);
    const ids = this.#ids.get(key) ?? new Set();
    this.#ids.set(key, ids.add(message.id));
    this.#keys.set(message.id, key);
  }

  cameAside(message: Keyed): void {
    if (message.orderingKey !== null) this.#secondary.set(keyOf(message), ++this.#puts);
  }

  gone(id: string): void {
    const key = this.#keys.get(id);
    if (key === undefined) return;
    this.#keys.delete(id);
    const ids = this.#ids.get(key);
    ids?.delete(id);
    if (ids?.size === 0) this.#ids.delete(key);
  }

  /** Whether it may go up now, together with those that are chosen already. */
  mayGo(one: Keyed, chosen: ReadonlySet<string>): boolean {
    const key = this.#keys.get(one.id);
    if (key === undefined) return true;
    if (this.heldAside(one)) return false;
    for (const id of this.#ids.get(key) ?? []) {
      if (id === one.id) return true;
      if (!chosen.has(id)) return false;
    }
    return true;
  }

  /** What the secondary store has, as it said itself when the puts stood at `mark`. */
  sawAside(messages: Iterable<Keyed>, wholeTopics: Iterable<string>, mark: number): void {
    for (const [key, at] of this.#secondary) if (at <= mark) this.#secondary.delete(key);
    const keys = [...wholeTopics, ...[...messages].filter(({ orderingKey }) => orderingKey !== null).map(keyOf)];
    for (const key of keys) if (!this.#secondary.has(key)) this.#secondary.set(key, mark);
  }

  /** What lies in journal and memory now: entries of processes that are gone have come, others have been taken over from us. */
  sawHere(waiting: Iterable<WaitingBelow>): void {
    const there = new Set<string>();
    const fresh: WaitingBelow[] = [];
    for (const one of waiting) {
      if (one.orderingKey === null) continue;
      there.add(one.id);
      if (!this.#keys.has(one.id)) fresh.push(one);
    }
    for (const id of [...this.#keys.keys()]) if (!there.has(id)) this.gone(id);
    for (const one of fresh.sort((a, b) => a.atMs - b.atMs)) this.came(one);
  }
}

const keyOf = ({ topic, orderingKey }: Keyed): string => `${topic}\n${orderingKey}`;
