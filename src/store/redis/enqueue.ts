/**
 * ENQUEUE in Redis: calls that come at the same moment travel in one script, and each is accepted or refused by itself. One
 * round trip serves them all, and Redis runs one script instead of many.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import type { EnqueueOptions } from "../store.ts";
import type { Db } from "./db.ts";
import { extraText } from "./rows.ts";
import { ENQUEUE } from "./scripts/enqueue.ts";

/** How much travels together at most: Redis does nothing else while a script runs (I10). */
const MESSAGES_MAX = 500;
const BYTES_MAX = 2 * 1_048_576;
/** Scripts under way at once: one runs, the next is on its way, the others gather what comes meanwhile. */
const FLYING_MAX = 3;

const KINDS = { a: "accepted", d: "duplicate", c: "conflict" } as const;

interface Waiting {
  readonly messages: readonly NewMessage[];
  readonly each: boolean;
  readonly now: Date | undefined;
  readonly bytes: number;
  resolve(results: Accepted[]): void;
  reject(error: unknown): void;
}

type Enqueue = (messages: readonly NewMessage[], options?: EnqueueOptions) => Promise<Accepted[]>;

/** `told` hears which lanes have new work. `accepted` runs before callers are told, and may still refuse. */
export function createEnqueue(db: Db, told: (lanes: readonly string[]) => void, accepted: () => Promise<void>): Enqueue {
  const waiting: Waiting[] = [];
  let flying = 0;
  let scheduled = false;

  async function flush(): Promise<void> {
    const calls = take(waiting);
    flying++;
    try {
      const [results, lanes] = await send(db, calls);
      if (results.some((one) => one.startsWith("a"))) await accepted();
      answer(calls, results);
      if (lanes.length > 0) told(lanes);
    } catch (error) {
      for (const { reject } of calls) reject(error);
    } finally {
      flying--;
      if (waiting.length > 0) schedule();
    }
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    queueMicrotask(() => {
      scheduled = false;
      while (flying < FLYING_MAX && waiting.length > 0) void flush();
    });
  }

  return async (messages, options = {}) => {
    db.port();
    if (options.tx !== undefined) {
      throw new MakegoodError("not_a_transaction", "The Redis store has no transactions to take part in: enqueue without `tx`.");
    }
    if (messages.length === 0) return [];
    const bytes = messages.reduce((sum, { payload }) => sum + payload.length, 0);
    return new Promise((resolve, reject) => {
      waiting.push({ messages, each: options.atomic === "each", now: options.now, bytes, resolve, reject });
      schedule();
    });
  };
}

/** The calls that go together: of the same moment, and not too many. */
function take(waiting: Waiting[]): Waiting[] {
  const moment = waiting[0]?.now?.getTime();
  let messages = 0;
  let bytes = 0;
  let count = 0;
  for (const one of waiting) {
    messages += one.messages.length;
    bytes += one.bytes;
    if (count > 0 && (one.now?.getTime() !== moment || messages > MESSAGES_MAX || bytes > BYTES_MAX)) break;
    count++;
  }
  return waiting.splice(0, count);
}

async function send(db: Db, calls: readonly Waiting[]): Promise<[results: string[], lanes: string[]]> {
  const { key, message, topic } = db.keys;
  const names = ["dedupe", "lanes", "accepted", "waiters"].map(key);
  const topics = new Set<string>();
  const args: string[] = [];
  for (const { messages, each } of calls) {
    args.push(String(messages.length), each ? "each" : "all");
    for (const one of messages) {
      topics.add(one.topic);
      names.push(message(one.id));
      args.push(one.id, one.topic, one.tenantId ?? "", one.key ?? "", one.payload, String(one.delayMs), String(one.priority));
      args.push(one.orderingKey ?? "", extraText(one.traceparent, one.schemaVersion), directText(one.directTry));
    }
  }
  for (const name of topics) names.push(topic(name));
  const at = { now: calls[0]?.now };
  return (await db.run(ENQUEUE, names, args, at)) as [string[], string[]];
}

function directText(direct: NewMessage["directTry"]): string {
  return direct ? `${direct.rejected ? "x" : "r"}${JSON.stringify([direct.code, direct.error])}` : "";
}

function answer(calls: readonly Waiting[], results: readonly string[]): void {
  let at = 0;
  for (const { messages, resolve, reject } of calls) {
    const first = results[at] as string;
    if (first.startsWith("t")) {
      const topic = first.slice(1);
      const id = messages.find((one) => one.topic === topic)?.id;
      reject(
        new MakegoodError("unknown_topic", `There is no topic ${topic}: declare it before enqueueing to it.`, { topic, id }),
      );
      at++;
      continue;
    }
    resolve(messages.map((_, i) => acceptedOf(results[at + i] as string)));
    at += messages.length;
  }
}

function acceptedOf(result: string): Accepted {
  return { kind: KINDS[result[0] as keyof typeof KINDS], id: result.slice(1) };
}
