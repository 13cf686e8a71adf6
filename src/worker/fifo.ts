/**
 * First in, first out, without moving what stays: taking from the front of a plain array costs its length.
 */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  first(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#items[this.#head] = undefined as T;
    this.#head++;
    if (this.#head === this.#items.length || this.#head > 4_096) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes out what `chosen` picks, oldest first. */
  takeWhere(chosen: (item: T) => boolean): T[] {
    const taken: T[] = [];
    const left: T[] = [];
    for (const item of this.#items.slice(this.#head)) (chosen(item) ? taken : left).push(item);
    this.#items = left;
    this.#head = 0;
    return taken;
  }
}
