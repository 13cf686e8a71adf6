/**
 * Gathers single enqueues of independent callers into one statement while earlier ones are on their way: one commit, one
 * fsync for many. Each caller still waits for its own commit and gets its own answer; one bad message fails alone.
 */
import type { Accepted } from "../../message/message.ts";
import type { Placed } from "./insert-placed.ts";
import type { LaneInfo } from "./lane-table.ts";

const FLUSHES_MAX = 2;
const BATCH_MAX = 500;

interface Waiting {
  readonly placed: Placed;
  readonly resolve: (accepted: Accepted) => void;
  readonly reject: (error: unknown) => void;
}

const orderOf = ({ placed: { message, lane } }: Waiting): string | null =>
  message.orderingKey === null ? null : `${lane.id}\u0000${message.orderingKey}`;

export function createCoalescer(
  insert: (batch: readonly Placed[]) => Promise<Accepted[]>,
  onWork: (lanes: readonly LaneInfo[]) => void,
): (placed: Placed) => Promise<Accepted> {
  let waiting: Waiting[] = [];
  /** Ordering keys under way: what comes after them goes after them. */
  const ordering = new Set<string>();
  let flying = 0;
  let scheduled = false;

  /**
   * Takes what may go together: a key that is in the batch already waits for the next batch, and so do later messages of its
   * order.
   */
  function take(): Waiting[] {
    const keys = new Set<string>();
    const passed = new Set(ordering);
    const batch: Waiting[] = [];
    const rest: Waiting[] = [];
    for (const entry of waiting) {
      const { message, lane } = entry.placed;
      const name = message.key === null ? message.id : `${lane.topicId}\u0000${lane.tenant}\u0000${message.key}`;
      const order = orderOf(entry);
      if (batch.length >= BATCH_MAX || keys.has(name) || (order !== null && passed.has(order))) {
        rest.push(entry);
        if (order !== null) passed.add(order);
      } else {
        keys.add(name);
        batch.push(entry);
      }
    }
    waiting = rest;
    return batch;
  }

  async function flush(): Promise<void> {
    const batch = take();
    if (batch.length === 0) return;
    flying++;
    const orders = batch.map(orderOf).filter((order) => order !== null);
    for (const order of orders) ordering.add(order);
    try {
      const accepted = await insert(batch.map((entry) => entry.placed));
      onWork(batch.map((entry) => entry.placed.lane));
      batch.forEach((entry, i) => {
        entry.resolve(accepted[i] as Accepted);
      });
    } catch (error) {
      await oneByOne(batch, error);
    } finally {
      flying--;
      for (const order of orders) ordering.delete(order);
      schedule();
    }
  }

  /** A statement fails as a whole: callers that did not cause it must not fail with it. */
  async function oneByOne(batch: readonly Waiting[], error: unknown): Promise<void> {
    if (batch.length === 1 || (error as { retryable?: boolean }).retryable) {
      for (const entry of batch) entry.reject(error);
      return;
    }
    for (const entry of batch) {
      await insert([entry.placed]).then(([accepted]) => entry.resolve(accepted as Accepted), entry.reject);
    }
  }

  function schedule(): void {
    if (scheduled || flying >= FLUSHES_MAX || waiting.length === 0) return;
    scheduled = true;
    // When no promise is left to run: callers that were released by the same commit come back together, each after steps of its own.
    queueMicrotask(() =>
      process.nextTick(() => {
        scheduled = false;
        if (flying < FLUSHES_MAX && waiting.length > 0) void flush();
      }),
    );
  }

  return (placed) =>
    new Promise((resolve, reject) => {
      waiting.push({ placed, resolve, reject });
      schedule();
    });
}
