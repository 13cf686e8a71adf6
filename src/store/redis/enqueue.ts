/**
 * ENQUEUE in Redis: calls that come at the same moment travel in one script, and each is accepted or refused by itself. One
 * round trip serves them all, and Redis runs one script instead of many.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import { afterOthers } from "../../platform/after-others.ts";
import type { EnqueueOptions } from "../store.ts";
import type { Db } from "./db.ts";
import { type EnqueueCall, runEnqueue } from "./enqueue-scripts.ts";

/** How much travels together at most: Redis does nothing else while a script runs (I10). */
const MESSAGES_MAX = 500;
const BYTES_MAX = 2 * 1_048_576;
/** Scripts under way at once: one runs, the next is on its way, the others gather what comes meanwhile. */
const FLYING_MAX = 2;
/** So many calls go as two scripts when none is under way: callers of one script come back together, and the server would wait for them. */
const HALVED_MIN = 8;

const KINDS = { a: "accepted", d: "duplicate", c: "conflict" } as const;

interface Waiting extends EnqueueCall {
  readonly bytes: number;
  resolve(results: Accepted[]): void;
  reject(error: unknown): void;
}

type Enqueue = (messages: readonly NewMessage[], options?: EnqueueOptions) => Promise<Accepted[]>;

/**
 * `onWork` hears which lanes have new work. `accepted` runs before callers are answered, and may still refuse; null: nothing to
 * wait for.
 */
export function createEnqueue(
  db: Db,
  onWork: (lanes: readonly string[]) => void,
  accepted: (() => Promise<void>) | null,
): Enqueue {
  const waiting: Waiting[] = [];
  let flying = 0;
  let scheduled = false;

  async function flush(): Promise<void> {
    const half = flying === 0 && waiting.length >= HALVED_MIN;
    const calls = take(waiting, half ? waiting.length >> 1 : waiting.length);
    flying++;
    try {
      const [results, lanes] = await runEnqueue(db, calls);
      // A duplicate counts, too: what it repeats may still be on one machine only.
      if (accepted && (results.length === 0 || results.some((one) => /^[ad]/.test(one)))) await accepted();
      answer(calls, results);
      if (lanes.length > 0) onWork(lanes);
    } catch (error) {
      for (const { reject } of calls) reject(error);
    } finally {
      flying--;
      schedule();
    }
  }

  function schedule(): void {
    if (scheduled || flying >= FLYING_MAX || waiting.length === 0) return;
    scheduled = true;
    // When no promise is left to run: callers that were answered by the same script come back together, each after steps of its own.
    queueMicrotask(() => process.nextTick(start));
  }

  function start(): void {
    scheduled = false;
    if (flying >= FLYING_MAX || waiting.length === 0) return;
    void flush();
    if (flying >= FLYING_MAX || waiting.length === 0) return;
    scheduled = true;
    // Written together, the two would be answered together, and the callers of both would come back at the same moment again.
    afterOthers(start);
  }

  return (messages, options = {}) =>
    new Promise((resolve, reject) => {
      db.port();
      if (options.tx !== undefined) {
        throw new MakegoodError(
          "not_a_transaction",
          "The Redis store has no transactions to take part in: enqueue without `tx`.",
        );
      }
      if (messages.length === 0) return resolve([]);
      const bytes = messages.reduce((sum, { payload }) => sum + payload.length, 0);
      waiting.push({ messages, each: options.atomic === "each", now: options.now, bytes, resolve, reject });
      schedule();
    });
}

/** The calls that go together: of the same moment, and not too many. */
function take(waiting: Waiting[], callsMax: number): Waiting[] {
  const moment = waiting[0]?.now?.getTime();
  let messages = 0;
  let bytes = 0;
  let count = 0;
  for (const one of waiting) {
    if (count === callsMax) break;
    messages += one.messages.length;
    bytes += one.bytes;
    if (count > 0 && (one.now?.getTime() !== moment || messages > MESSAGES_MAX || bytes > BYTES_MAX)) break;
    count++;
  }
  return waiting.splice(0, count);
}

/** No results: all were accepted. */
function answer(calls: readonly Waiting[], results: readonly string[]): void {
  let at = 0;
  for (const { messages, resolve, reject } of calls) {
    const first = results[at];
    if (first?.startsWith("t")) {
      const topic = first.slice(1);
      const id = messages.find((one) => one.topic === topic)?.id;
      reject(
        new MakegoodError("unknown_topic", `There is no topic ${topic}: declare it before enqueueing to it.`, { topic, id }),
      );
      at++;
      continue;
    }
    const from = at;
    resolve(messages.map(({ id }, i) => acceptedOf(results[from + i] ?? "a", id)));
    at += messages.length;
  }
}

function acceptedOf(result: string, id: string): Accepted {
  return { kind: KINDS[result[0] as keyof typeof KINDS], id: result.length === 1 ? id : result.slice(1) };
}
