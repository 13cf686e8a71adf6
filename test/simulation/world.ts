/**
 * The world of one history: virtual time, the events that are still to come, what has happened as one hash, and the first broken promise.
 * One step is one event with everything that follows from it before time goes on.
 */
import { createHash } from "node:crypto";
import type { Timer } from "../../src/platform/clock.ts";

export interface Failure {
  /** `I3`, `I12`, `order`, `one effect` … */
  readonly invariant: string;
  readonly text: string;
  readonly step: number;
  readonly atMs: number;
}

interface Event {
  readonly atMs: number;
  /** Events of one moment come in the order in which they were made. */
  readonly seq: number;
  run: (() => void) | null;
}

export const START_MS = Date.UTC(2026, 0, 1);
const NOTES_KEPT = 400;
const HASHED_AT_ONCE = 65_536;

export class World {
  nowMs = START_MS;
  steps = 0;
  failure: Failure | null = null;
  readonly #events: Event[] = [];
  readonly #hash = createHash("sha256");
  readonly #kept: string[] = [];
  #unhashed = "";
  #made = 0;

  get elapsedMs(): number {
    return this.nowMs - START_MS;
  }

  after(ms: number, run: () => void): Timer {
    const event: Event = { atMs: this.nowMs + Math.max(0, Math.ceil(ms)), seq: this.#made++, run };
    this.#push(event);
    return {
      cancel: () => {
        event.run = null;
      },
    };
  }

  /** Runs the next event and all that follows from it. False: there is none. */
  async step(): Promise<boolean> {
    for (;;) {
      const event = this.#pop();
      if (!event) return false;
      const { run } = event;
      if (run === null) continue;
      this.nowMs = Math.max(this.nowMs, event.atMs);
      this.steps++;
      run();
      // Every promise that can go on has gone on before the next turn of the real event loop.
      await new Promise(setImmediate);
      return true;
    }
  }

  /** One line of the history. */
  note(line: string): void {
    const whole = `${this.elapsedMs} ${line}\n`;
    this.#unhashed += whole;
    if (this.#unhashed.length > HASHED_AT_ONCE) this.#flush();
    this.#kept.push(whole);
    if (this.#kept.length > 2 * NOTES_KEPT) this.#kept.splice(0, NOTES_KEPT);
  }

  /** The last lines of the history. */
  tail(lines: number): string[] {
    return this.#kept.slice(-lines).map((line) => line.trimEnd());
  }

  violated(invariant: string, text: string): void {
    if (this.failure !== null) return;
    this.failure = { invariant, text, step: this.steps, atMs: this.elapsedMs };
    this.note(`VIOLATED ${invariant}: ${text}`);
  }

  /** Of everything that was noted; the end of the history. */
  digest(): string {
    this.#flush();
    return this.#hash.digest("hex");
  }

  #flush(): void {
    this.#hash.update(this.#unhashed);
    this.#unhashed = "";
  }

  #push(event: Event): void {
    const heap = this.#events;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#events;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq);
