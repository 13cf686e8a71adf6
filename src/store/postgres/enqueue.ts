/**
 * ENQUEUE: a batch in the caller's transaction, a batch in one of our own, or single messages of independent callers gathered
 * into one statement. Accepted means committed; a repeat of an id or of a key with the same payload is the same message (I1, I7).
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import { idTimeMs } from "../../platform/ids.ts";
import { refusePool, requireBlock } from "../shared/caller-transaction.ts";
import type { At, EnqueueOptions, Transaction } from "../store.ts";
import { createCoalescer } from "./coalesce.ts";
import type { Queryable } from "./connection.ts";
import type { Db } from "./db.ts";
import { answersFor, type How, insert, type Placed, type Run, Strayed, type Where } from "./insert-placed.ts";
import type { LaneInfo } from "./lane-table.ts";
import { DAY_MS, dayOf, daysAround, ensurePartitions } from "./partitions.ts";
import { isMissingPartition, isUniqueViolation } from "./sql-errors.ts";
import { queryText, TextQuery } from "./text-query.ts";
import { queryIn, wrongDatabase } from "./transaction.ts";

/** An id whose time is further off than this comes from a broken clock; it gets no partition of its own. */
const CLOCK_OFF_MS_MAX = 9 * DAY_MS;

export type Enqueue = (messages: readonly NewMessage[], options?: EnqueueOptions) => Promise<Accepted[]>;

/** `onWork` hears of the lanes that have new work, after their commit. */
export function createEnqueue(db: Db, onWork: (lanes: readonly LaneInfo[]) => void): Enqueue {
  const days = new Set(daysAround(db.clock.wallMs()));
  const repeats: Repeats = { untilMs: Number.NEGATIVE_INFINITY };
  const one = createCoalescer((batch) => insertEach(db, batch, repeats, {}), onWork);
  const inCallOrder = createCallOrder((messages: readonly NewMessage[]) => place(db, messages, days));

  return async function enqueue(messages, { tx, atomic = "all", now } = {}) {
    if (tx) refusePool(tx);
    if (messages.length === 0) return [];
    // Without a promise where possible: a caller's transaction waits for every turn of the event loop.
    const placed = (inCallOrder.free(messages) && placeKnown(db, messages, days)) || (await inCallOrder.place(messages));
    if (tx) return insertIn(db, placed, tx, { now }).catch(strayedIn(db, messages, days, tx, { now }));
    for (let again = placed, tries = 1; ; tries++) {
      try {
        return await insertOwn(again, atomic, now);
      } catch (thrown) {
        if (!(thrown instanceof Strayed)) throw thrown;
        if (tries === STRAYED_MAX)
          throw new MakegoodError("store_unavailable", "its lanes were retired while it was enqueued", {}, thrown);
        // Retired meanwhile, or the database behind our url is another one than it was: the lanes are looked up or made again.
        await db.lanes.readInstallation();
        db.lanes.forget(thrown.lanes);
        again = await place(db, messages, days);
      }
    }
  };

  async function insertOwn(placed: readonly Placed[], atomic: "all" | "each", now: Date | undefined): Promise<Accepted[]> {
    const alone = placed.length === 1 || atomic === "each";
    if (alone && now === undefined) return placed.length === 1 ? [await one(placed[0] as Placed)] : Promise.all(placed.map(one));
    const accepted = alone ? await insertOneByOne(db, placed, repeats, { now }) : await insertAll(db, placed, repeats, { now });
    if (alone || !accepted.some((a) => a.kind === "conflict")) onWork(placed.map((p) => p.lane));
    return accepted;
  }
}

/** A lane that was just made is hardly retired before it is used, and never for long. */
const STRAYED_MAX = 5;

/**
 * A caller's transaction of another database is refused. A lane that is gone, or that was made after the transaction took its snapshot, is
 * looked up or made again outside of it; from here on it cannot go, because the transaction has read the table of lanes.
 */
function strayedIn(db: Db, messages: readonly NewMessage[], days: Set<number>, tx: Transaction, at: At) {
  const sentAs = db.lanes.installation;
  const refused = (thrown: unknown): never => {
    throw thrown instanceof Strayed ? wrongDatabase(db) : thrown;
  };
  return async (thrown: unknown): Promise<Accepted[]> => {
    if (!(thrown instanceof Strayed)) throw thrown;
    if (thrown.database && !(await isAnotherNow(db, sentAs))) throw wrongDatabase(db);
    db.lanes.forget(thrown.lanes);
    return insertIn(db, await place(db, messages, days), tx, { ...at, lanesSeen: true }).catch(refused);
  };
}

/**
 * Whether the database behind our own url is no longer the one that the statement was made for: a process that enqueues only in
 * transactions learns it here.
 */
async function isAnotherNow(db: Db, sentAs: string): Promise<boolean> {
  if (db.lanes.installation === sentAs) {
    await db.lanes.readInstallation().catch((cause) => {
      throw wrongDatabase(db, cause);
    });
  }
  return db.lanes.installation !== sentAs;
}

/** Messages with an order are placed in the order of their calls, so that none overtakes one that has to wait for its lane. */
function createCallOrder(place: (messages: readonly NewMessage[]) => Promise<Placed[]>) {
  let last: Promise<unknown> = Promise.resolve();
  let placing = 0;
  const ordered = (messages: readonly NewMessage[]) => messages.some(({ orderingKey }) => orderingKey !== null);
  return {
    free: (messages: readonly NewMessage[]) => placing === 0 || !ordered(messages),
    place(messages: readonly NewMessage[]): Promise<Placed[]> {
      if (!ordered(messages)) return place(messages);
      placing++;
      const mine = last.then(() => place(messages));
      // A step later than the caller: until the caller has gone on, no later call may pass it.
      last = mine
        .catch(() => {})
        .then(() => {
          placing--;
        });
      return mine;
    },
  };
}

/** Undefined where a lane or a day has to be made first. */
function placeKnown(db: Db, messages: readonly NewMessage[], days: ReadonlySet<number>): Placed[] | undefined {
  const placed: Placed[] = [];
  for (const message of messages) {
    const lane = db.lanes.known(message);
    if (!lane || !days.has(dayOf(idTimeMs(message.id)))) return undefined;
    placed.push({ message, lane });
  }
  return placed;
}

/** Makes what is missing on connections of our own: inside a caller's transaction it would be too late, or undone with it. */
async function place(db: Db, messages: readonly NewMessage[], days: Set<number>): Promise<Placed[]> {
  const lanes = await db.lanes.of(messages);
  for (const { id } of messages) {
    const day = dayOf(idTimeMs(id));
    if (days.has(day) || Math.abs(day - db.clock.wallMs()) > CLOCK_OFF_MS_MAX) continue;
    await ensurePartitions(db.connection, db.s, [day]);
    days.add(day);
  }
  return messages.map((message, i) => ({ message, lane: lanes[i] as LaneInfo }));
}

/** Keys that come twice in one call are deduplicated here: the statement itself must see each key once. */
export function withoutRepeats(placed: readonly Placed[]): { first: Placed[]; repeats: Map<number, number> } {
  const seen = new Map<string, number>();
  const first: Placed[] = [];
  const repeats = new Map<number, number>();
  placed.forEach((p, i) => {
    const { key } = p.message;
    // An id has none of the separators, so it cannot be taken for a key.
    const name = key === null ? p.message.id : `${p.lane.topicId}\u0000${p.lane.tenant}\u0000${key}`;
    const earlier = seen.get(name);
    if (earlier !== undefined) repeats.set(i, earlier);
    else {
      seen.set(name, i);
      first.push(p);
    }
  });
  return { first, repeats };
}

function spread(placed: readonly Placed[], repeats: Map<number, number>, results: readonly Accepted[]): Accepted[] {
  let next = 0;
  const all: Accepted[] = [];
  for (const [i, p] of placed.entries()) {
    const earlier = repeats.get(i);
    if (earlier === undefined) {
      all.push(results[next++] as Accepted);
      continue;
    }
    const original = placed[earlier] as Placed;
    const answer = all[earlier] as Accepted;
    const same = original.message.payload === p.message.payload && answer.kind !== "conflict";
    all.push({ kind: same ? "duplicate" : "conflict", id: answer.id });
  }
  return all;
}

async function insertIn(db: Db, placed: readonly Placed[], tx: Transaction, at: Where): Promise<Accepted[]> {
  const run: Run = (text, values, name) => queryIn(db, tx, text, values, name);
  await requireBlock(tx, (text) => run(text, []));
  const how: How = { repeat: true, own: false, ...at };
  if (placed.length === 1) {
    return answersFor(db, placed, await insert(db, placed, run, how), run, how);
  }
  const { first, repeats } = withoutRepeats(placed);
  // One refuses all: what a batch inserted before a conflict came to light must not be there if the caller commits all the same.
  const undoable = placed.length > 1 && placed.some((p) => p.message.key !== null);
  if (undoable) await tx.query("savepoint makegood_enqueue");
  const missing = await insert(db, first, run, how);
  const results = spread(placed, repeats, await answersFor(db, first, missing, run, how));
  if (undoable) {
    const refused = results.some((r) => r.kind === "conflict");
    await tx.query(`${refused ? "rollback to" : "release"} savepoint makegood_enqueue`);
  }
  return results;
}

/** One transaction of our own; a conflict rolls all of it back. */
async function insertAll(db: Db, placed: readonly Placed[], known: Repeats, at: At): Promise<Accepted[]> {
  const { first, repeats } = withoutRepeats(placed);
  const refused = Symbol("refused");
  let results: Accepted[] = [];
  const work = async (run: Run, how: How) => {
    results = spread(placed, repeats, await answersFor(db, first, await insert(db, first, run, how), run, how));
    if (results.some((r) => r.kind === "conflict")) throw refused;
  };
  // Without repeats one statement is enough: it fails as a whole, or nothing conflicts.
  const undoable = (repeat: boolean) => (repeat || repeats.size > 0) && first.some((p) => p.message.key !== null);
  try {
    await repaired(db, placed, known, (repeat) => {
      const how = { repeat, own: true, ...at };
      return undoable(repeat)
        ? db.connection.transaction("enqueue", (client) => work(clientRun(client, db), how))
        : work(ownRun(db), how);
    });
  } catch (thrown) {
    if (thrown !== refused) throw thrown;
  }
  return results;
}

/** Independent callers in one statement: each gets its own answer. */
async function insertEach(db: Db, placed: readonly Placed[], known: Repeats, at: At): Promise<Accepted[]> {
  return repaired(db, placed, known, async (repeat) => {
    const how = { repeat, own: true, ...at };
    return answersFor(db, placed, await insert(db, placed, ownRun(db), how), ownRun(db), how);
  });
}

async function insertOneByOne(db: Db, placed: readonly Placed[], known: Repeats, at: At): Promise<Accepted[]> {
  const all: Accepted[] = [];
  for (const each of placed) all.push(...(await insertEach(db, [each], known, at)));
  return all;
}

const clientRun =
  (client: Queryable, db: Db): Run =>
  (text, values, name) =>
    queryText(client as never, new TextQuery(text, values, db.connection.direct ? name : undefined));

const ownRun =
  (db: Db): Run =>
  (text, values, name) =>
    db.connection.rows("enqueue", text, values, { name }) as Promise<(string | null)[][]>;

/** Until when repeats of keys are to be expected: where there was one, there are more. */
interface Repeats {
  untilMs: number;
}

/** So long after the last one; a statement that fails for a repeat costs a second one and a line in the server's log. */
const REPEATS_MS = 10_000;

/**
 * Tries once more where the first try ran into something that can be put right: a key or an id that is there already (a
 * repeat, or a retry after an unknown COMMIT), or a day without its partition (upkeep should have made it, accepting must not
 * depend on that).
 */
async function repaired<T>(db: Db, placed: readonly Placed[], known: Repeats, work: (repeat: boolean) => Promise<T>): Promise<T> {
  try {
    return await work(db.clock.monotonicMs() < known.untilMs);
  } catch (thrown) {
    const cause = thrown instanceof MakegoodError ? thrown.cause : thrown;
    if (isUniqueViolation(cause)) {
      known.untilMs = db.clock.monotonicMs() + REPEATS_MS;
      return work(true);
    }
    if (!isMissingPartition(cause)) throw thrown;
    const wall = db.clock.wallMs();
    const days = [...new Set(placed.map(({ message }) => dayOf(idTimeMs(message.id))))];
    if (days.some((day) => Math.abs(day - wall) > CLOCK_OFF_MS_MAX)) throw thrown;
    await ensurePartitions(db.connection, db.s, days);
    return work(true);
  }
}
