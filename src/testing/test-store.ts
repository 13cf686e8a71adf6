/**
 * The memory store with transactions of the caller's, for unit tests of code that enqueues inside one. What is enqueued is seen by nobody
 * before the commit; a key that an open transaction holds is waited for, as PostgreSQL does it. Not faked: savepoints, serialization failures, what
 * the transaction itself writes and reads, and that a failed statement ends it.
 */
import { MakegoodError } from "../message/errors.ts";
import type { Accepted, NewMessage } from "../message/message.ts";
import { systemClock } from "../platform/clock.ts";
import { createIds } from "../platform/ids.ts";
import { systemRandom } from "../platform/random.ts";
import { accept, check, checkTopics, dedupeScope, enqueue } from "../store/memory/enqueue.ts";
import { type MemoryStoreOptions, memoryStoreOn } from "../store/memory/memory-store.ts";
import { createState, nowMs, type State } from "../store/memory/state.ts";
import type { EnqueueOptions, Store, Transaction } from "../store/store.ts";

/** What code under test takes for its database client inside a transaction. */
export interface TestTransaction extends Transaction {
  /** Everything but ours that was asked of it, in order. */
  readonly queries: readonly { readonly text: string; readonly values: readonly unknown[] }[];
  /** `commit`, `rollback` as texts of a query do the same. */
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

export interface TestStore extends Store {
  /** Begins a transaction. `answer`: the rows that queries of the code under test get; none unless said. */
  begin(answer?: (text: string, values: readonly unknown[]) => readonly unknown[]): TestTransaction;
}

/** Asked of whatever was given as `tx`, so that it may be wrapped as an adapter wraps it. */
const WHO = "select makegood_test_transaction()";

interface Staged {
  readonly message: NewMessage;
  readonly atMs: number;
}

interface Open {
  readonly id: string;
  readonly staged: Staged[];
  readonly ended: Promise<void>;
  readonly end: () => void;
  waitsFor: Open | null;
}

const newId = createIds();

export function createTestStore({ clock = systemClock, random = systemRandom }: MemoryStoreOptions = {}): TestStore {
  const state = createState(clock, random);
  const memory = memoryStoreOn(state);
  const storeId = newId();
  const open = new Map<string, Open>();

  async function enqueueIn(id: string, messages: readonly NewMessage[], options: EnqueueOptions): Promise<Accepted[]> {
    const own = open.get(id);
    if (!own) throw new MakegoodError("not_a_transaction", "`tx` has ended: enqueue before its commit or rollback");
    checkTopics(state, messages);
    await othersOver(open, messages, own);
    const before = own.staged.map(({ message }) => message);
    const { results, fresh } = check(state, [...before, ...messages]);
    const asked = results.slice(before.length);
    if (asked.some(({ kind }) => kind === "conflict")) return asked;
    const atMs = nowMs(state, options);
    const known = new Set(before.map((message) => message.id));
    own.staged.push(...fresh.filter((message) => !known.has(message.id)).map((message) => ({ message, atMs })));
    return asked;
  }

  return {
    ...memory,
    traits: { ...memory.traits, callerTransactions: true },
    async enqueue(messages, options = {}) {
      await memory.check();
      if (options.tx !== undefined) return enqueueIn(await idOf(options.tx, storeId), messages, options);
      await othersOver(open, messages, null);
      return enqueue(state, messages, options);
    },
    begin(answer = () => []) {
      let end = (): void => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      const own: Open = { id: `${storeId}/${newId()}`, staged: [], ended, end, waitsFor: null };
      open.set(own.id, own);
      return transactionOn(own, answer, (commits) => finish(state, open, own, commits));
    },
  };
}

function finish(state: State, open: Map<string, Open>, own: Open, commits: boolean): void {
  if (!open.delete(own.id)) throw new MakegoodError("not_a_transaction", "this transaction has ended already");
  // Without a pause, so that nobody sees half of it. Who waits for one of its keys goes on after that.
  if (commits) for (const { message, atMs } of own.staged) accept(state, [message], { now: new Date(atMs) });
  own.end();
}

function transactionOn(
  own: Open,
  answer: (text: string, values: readonly unknown[]) => readonly unknown[],
  end: (commits: boolean) => void,
): TestTransaction {
  const queries: { text: string; values: readonly unknown[] }[] = [];
  return {
    queries,
    async query(text, values = []) {
      if (text === WHO) return { rows: [{ id: own.id }] };
      queries.push({ text, values });
      if (/^\s*(?:commit|end)\b/i.test(text)) end(true);
      else if (/^\s*rollback\b(?!\s+to\b)/i.test(text)) end(false);
      else return { rows: [...answer(text, values)] };
      return { rows: [] };
    },
    commit: async () => end(true),
    rollback: async () => end(false),
  };
}

/** Which transaction it is, asked through whatever wraps it. */
async function idOf(tx: Transaction, storeId: string): Promise<string> {
  const answer = await Promise.resolve(tx.query(WHO)).catch(() => undefined);
  const [row] = (answer as { readonly rows?: readonly unknown[] } | undefined)?.rows ?? [];
  const [id] = typeof row === "object" && row !== null ? Object.values(row) : [];
  if (typeof id !== "string") {
    const text = "`tx` is not a transaction of this test store: begin one with store.begin(), and commit or roll it back";
    throw new MakegoodError("not_a_transaction", text);
  }
  if (id.startsWith(`${storeId}/`)) return id;
  throw new MakegoodError("wrong_database", "`tx` was begun on another store than this one: begin it with this store's begin()");
}

/** Nobody can know whether another open transaction that has one of these keys or ids will commit. */
async function othersOver(open: ReadonlyMap<string, Open>, messages: readonly NewMessage[], own: Open | null): Promise<void> {
  const wanted = new Set(messages.flatMap(namesOf));
  const holds = (other: Open): boolean =>
    other !== own && other.staged.some(({ message }) => namesOf(message).some((name) => wanted.has(name)));
  for (;;) {
    const holder = [...open.values()].find(holds);
    if (!holder) return;
    for (let next: Open | null = holder; own && next; next = next.waitsFor) {
      if (next === own)
        throw new MakegoodError("retry_transaction", "two transactions wait for a key of each other: run one of them again");
    }
    if (own) own.waitsFor = holder;
    await holder.ended;
    if (own) own.waitsFor = null;
  }
}

function namesOf(message: NewMessage): string[] {
  const scope = dedupeScope(message);
  return scope === null ? [message.id] : [message.id, scope];
}
