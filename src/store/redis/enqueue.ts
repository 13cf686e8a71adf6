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
import { ENQUEUE_ONE } from "./scripts/enqueue-one.ts";

/** How much travels together at most: Redis does nothing else while a script runs (I10). */
const MESSAGES_MAX = 500;
const BYTES_MAX = 2 * 1_048_576;
/** Scripts under way at once: one runs, the next is on its way, the others gather what comes meanwhile. */
const FLYING_MAX = 2;

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

/** `told` hears which lanes have new work. `accepted` runs before callers are told, and may still refuse; null: nothing to wait for. */
export function createEnqueue(db: Db, told: (lanes: readonly string[]) => void, accepted: (() => Promise<void>) | null): Enqueue {
  const waiting: Waiting[] = [];
  let flying = 0;
  let scheduled = false;

  async function flush(): Promise<void> {
    const calls = take(waiting);
    flying++;
    try {
      const [results, lanes] = await send(db, calls);
      if (accepted && (results.length === 0 || results.includes("a"))) await accepted();
      answer(calls, results);
      if (lanes.length > 0) told(lanes);
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
    queueMicrotask(() =>
      process.nextTick(() => {
        scheduled = false;
        while (flying < FLYING_MAX && waiting.length > 0) void flush();
      }),
    );
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

type Reply = [results: string[], lanes: string[]];

async function send(db: Db, calls: readonly Waiting[]): Promise<Reply> {
  const { key } = db.keys;
  const names = [key("dedupe"), key("lanes"), key("accepted"), key("waiters")];
  const [call] = calls as readonly [Waiting];
  const [one] = call.messages as readonly [NewMessage];
  const single = calls.length === 1 && call.messages.length === 1 && one.orderingKey === null && unusualText(one) === "";
  return single ? sendOne(db, names, one, call) : sendMany(db, names, calls);
}

async function sendOne({ keys, run }: Db, names: string[], one: NewMessage, { now }: Waiting): Promise<Reply> {
  names.push(keys.message(one.id), keys.topic(one.topic));
  const args = [one.topic, one.tenantId ?? "", String(one.priority), one.key ?? "", one.payload];
  return (await run(ENQUEUE_ONE, names, args, { now })) as Reply;
}

async function sendMany(db: Db, names: string[], calls: readonly Waiting[]): Promise<Reply> {
  const { message, topic } = db.keys;
  const groups = new Map<string, string>();
  const groupArgs: string[] = [];
  const topics = new Set<string>();
  const args: string[] = [];
  let sizes = "";
  let singles = true;
  for (const { messages, each } of calls) {
    sizes += `${each ? "e" : "a"}${messages.length}`;
    if (messages.length !== 1) singles = false;
    for (const one of messages) {
      const { tenantId, orderingKey } = one;
      const name = `${one.topic}\u0000${tenantId ?? ""}\u0000${one.priority}\u0000${orderingKey ?? ""}`;
      let group = groups.get(name);
      if (group === undefined) {
        group = String(groups.size + 1);
        groups.set(name, group);
        groupArgs.push(one.topic, tenantId ?? "", String(one.priority), orderingKey ?? "");
        topics.add(one.topic);
      }
      names.push(message(one.id));
      args.push(group, one.key ?? "", unusualText(one), one.payload);
    }
  }
  for (const name of topics) names.push(topic(name));
  const all = [singles ? "" : sizes, String(groups.size), ...groupArgs, ...args];
  return (await db.run(ENQUEUE, names, all, { now: calls[0]?.now })) as Reply;
}

/** What most messages do not have: a delay, a direct try, extra fields. */
function unusualText({ delayMs, directTry: direct, traceparent, schemaVersion }: NewMessage): string {
  const extra = extraText(traceparent, schemaVersion);
  if (delayMs === 0 && !direct && extra === "") return "";
  const tried = direct ? `${direct.rejected ? "x" : "r"}${JSON.stringify([direct.code, direct.error])}` : "";
  return `${delayMs}\n${tried}\n${extra}`;
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
