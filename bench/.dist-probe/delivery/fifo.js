/**
 * First in, first out, without moving what stays: taking from the front of a plain array costs its length.
 */
export class Fifo {
    #items = [];
    #head = 0;
    get length() {
        return this.#items.length - this.#head;
    }
    push(item) {
        this.#items.push(item);
    }
    first() {
        return this.#items[this.#head];
    }
    shift() {
        const item = this.#items[this.#head];
        if (item === undefined)
            return undefined;
        this.#items[this.#head] = undefined;
        this.#head++;
        if (this.#head === this.#items.length || this.#head > 4_096) {
            this.#items = this.#items.slice(this.#head);
            this.#head = 0;
        }
        return item;
    }
    /** Takes out what `chosen` picks, oldest first. */
    takeWhere(chosen) {
        const taken = [];
        const left = [];
        this.#items.slice(this.#head).forEach((item, index) => {
            (chosen(item, index) ? taken : left).push(item);
        });
        this.#items = left;
        this.#head = 0;
        return taken;
    }
}
//# sourceMappingURL=fifo.js.map