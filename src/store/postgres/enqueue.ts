/**
 * ENQUEUE: a batch in the caller's transaction, a batch in one of our own, or single messages of independent callers gathered
 * into one statement. Accepted means committed; a repeat of an id or of a key with the same payload is the same message (I1, I7).
 */
import { MakegoodError } from "../../message/errors.ts";
import type { Accepted, NewMessage } from "../../message/message.ts";
import { idTimeMs } from "../../platform/ids.ts";
import type { At, EnqueueOptions, Transaction } from "../store.ts";
import { clockSql } from "./clock-sql.ts";
import { createCoalescer } from "./coalesce.ts";
import type { Queryable } from "./connection.ts";
import type { Db } from "./db.ts";
import { batchValues, shortValues } from "./enqueue-values.ts";
import { KIND_ORDERED, type LaneInfo } from "./lane-table.ts";
import { DAY_MS, dayOf, daysAround, ensurePartitions } from "./partitions.ts";
import { isMissingPartition } from "./sql-errors.ts";
import { enqueueBatch, enqueueOne, findKeys, sameMessage } from "./statements/enqueue.ts";
import { queryIn, refusePool } from "./transaction.ts";

/** An id whose time is further off than this comes from a broken clock; it gets no partition of its own. */
const CLOCK_OFF_MS_MAX = 9 * DAY_MS;

export interface Placed {
  readonly message: NewMessage;
  readonly lane: LaneInfo;
}

export type Enqueue = (messages: readonly NewMessage[], options?: EnqueueOptions) => Promise<Accepted[]>;

/** `told` hears of the lanes that have new work, after their commit. */
export function createEnqueue(db: Db, told: (lanes: readonly LaneInfo[]) => void): Enqueue {
  const room = createRoom(db);
  const one = createCoalescer((batch) => insertEach(db, batch, {}), told);

  return async function enqueue(messages, { tx, atomic = "all", now } = {}) {
    if (tx) refusePool(tx);
    if (messages.length === 0) return [];
    const placed = await place(db, messages);
    await room(messages);
    if (tx) return insertIn(db, placed, tx, { now });
    const alone = messages.length === 1 || atomic === "each";
    if (alone && now === undefined) return Promise.all(placed.map(one));
    const accepted = alone ? await insertOneByOne(db, placed, { now }) : await insertAll(db, placed, { now });
    if (alone || !accepted.some((a) => a.kind === "conflict")) told(placed.map((p) => p.lane));
    return accepted;
  };
}

/** Makes the day of a message before it is needed: inside a caller's transaction it would be too late. */
function createRoom(db: Db): (messages: readonly NewMessage[]) => Promise<void> {
  const made = new Set(daysAround(db.clock.wallMs()));
  return async (messages) => {
    for (const { id } of messages) {
      const day = dayOf(idTimeMs(id));
      if (made.has(day)) continue;
      if (Math.abs(day - db.clock.wallMs()) > CLOCK_OFF_MS_MAX) return;
      await ensurePartitions(db.connection, db.s, [day]);
      made.add(day);
    }
  };
}

async function place(db: Db, messages: readonly NewMessage[]): Promise<Placed[]> {
  const placed: Placed[] = [];
  for (const message of messages) {
    const { topic, tenantId, priority, orderingKey } = message;
    const lane =
      db.lanes.known(topic, tenantId, priority, orderingKey) ?? (await db.lanes.of(topic, tenantId, priority, orderingKey));
    placed.push({ message, lane });
  }
  return placed;
}

/** Where a statement of an enqueue runs: returns rows as arrays. */
type Run = (text: string, values: unknown[], name?: string) => Promise<(string | null)[][]>;

/** Sends one short or one batch statement; returns the ids that were not inserted because their key exists. */
async function insert(db: Db, placed: readonly Placed[], run: Run, tx: boolean, { now }: At): Promise<Set<string>> {
  const clock = clockSql(now);
  const [only] = placed;
  const nowMs = now?.getTime() ?? db.clock.wallMs();
  const old = placed.some(({ message }) => nowMs - idTimeMs(message.id) > DAY_MS);
  if (placed.length === 1 && only && !old && only.lane.kind !== KIND_ORDERED && !only.message.directTry) {
    const keyed = only.message.key !== null;
    const name = now === undefined ? `mg_enqueue_${keyed ? "keyed" : "plain"}_${tx ? "tx" : "own"}` : undefined;
    const [row] = await run(enqueueOne(db.s, clock, { keyed, tx }), shortValues(only), name);
    if (row?.[1] === "false") throw notInTransaction();
    return row?.[0] === "1" ? new Set() : new Set([only.message.id]);
  }
  const { parts, values } = batchValues(placed, tx, old);
  const [row] = await run(enqueueBatch(db.s, clock, parts), values);
  if (row?.[1] === "false") throw notInTransaction();
  return new Set(row?.[0]?.split(",") ?? []);
}

/** Whose the missing ones are; a key whose owner is gone again (pruned in between) stays undefined. */
async function judge(db: Db, placed: readonly Placed[], missing: Set<string>, run: Run): Promise<(Accepted | undefined)[]> {
  const results: (Accepted | undefined)[] = placed.map(({ message }) =>
    missing.has(message.id) ? undefined : { kind: "accepted", id: message.id },
  );
  if (missing.size === 0) return results;
  const asked = placed.flatMap(({ message, lane }, i) =>
    missing.has(message.id) && message.key !== null ? [{ i, topic_id: lane.topicId, tenant: lane.tenant, key: message.key }] : [],
  );
  const owners = asked.length > 0 ? await run(findKeys(db.s), [JSON.stringify(asked)]) : [];
  for (const [index, id, hash] of owners) {
    const i = Number(index);
    const message = placed[i]?.message as NewMessage;
    // The same id means that an earlier try of this very call did commit.
    const kind = id === message.id ? "accepted" : hash === message.payloadHash ? "duplicate" : "conflict";
    results[i] = { kind, id: id as string };
  }
  for (const [i, { message }] of placed.entries()) {
    if (results[i] || message.key !== null) continue;
    const [row] = await run(sameMessage(db.s), [message.id, message.payload]);
    if (row) results[i] = { kind: row[0] === "true" ? "accepted" : "conflict", id: message.id };
  }
  return results;
}

/** Keys that come twice in one call are settled here: the statement itself must see each key once. */
export function withoutRepeats(placed: readonly Placed[]): { first: Placed[]; repeats: Map<number, number> } {
  const seen = new Map<string, number>();
  const first: Placed[] = [];
  const repeats = new Map<number, number>();
  placed.forEach((p, i) => {
    const { key } = p.message;
    const name = key === null ? `id\u0000${p.message.id}` : `${p.lane.topicId}\u0000${p.lane.tenant}\u0000${key}`;
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
    const same = original.message.payloadHash === p.message.payloadHash && answer.kind !== "conflict";
    all.push({ kind: same ? "duplicate" : "conflict", id: answer.id });
  }
  return all;
}

async function insertIn(db: Db, placed: readonly Placed[], tx: Transaction, at: At): Promise<Accepted[]> {
  const run: Run = (text, values, name) => queryIn(db, tx, text, values, name);
  const { first, repeats } = withoutRepeats(placed);
  // One refuses all: what a batch inserted before a conflict came to light must not be there if the caller commits all the same.
  const undoable = placed.length > 1 && placed.some((p) => p.message.key !== null);
  if (undoable) await tx.query("savepoint makegood_enqueue");
  const missing = await insert(db, first, run, true, at);
  const results = spread(placed, repeats, await settled(db, first, missing, run, true, at));
  if (undoable) {
    const refused = results.some((r) => r.kind === "conflict");
    await tx.query(`${refused ? "rollback to" : "release"} savepoint makegood_enqueue`);
  }
  return results;
}

/** Judges the missing; a key that was pruned between the two statements is simply inserted again, once. */
async function settled(
  db: Db,
  placed: readonly Placed[],
  missing: Set<string>,
  run: Run,
  tx: boolean,
  at: At,
): Promise<Accepted[]> {
  const results = await judge(db, placed, missing, run);
  const again = placed.filter((_, i) => results[i] === undefined);
  if (again.length > 0) {
    const second = await judge(db, again, await insert(db, again, run, tx, at), run);
    for (const [i, p] of placed.entries()) results[i] ??= second[again.indexOf(p)];
  }
  return results.map((result) => {
    if (!result)
      throw new MakegoodError(
        "retry_transaction",
        "a key was deleted and taken again while it was looked up; run the call again",
      );
    return result;
  });
}

/** One transaction of our own; a conflict rolls all of it back. */
async function insertAll(db: Db, placed: readonly Placed[], at: At): Promise<Accepted[]> {
  const { first, repeats } = withoutRepeats(placed);
  const refused = Symbol("refused");
  let results: Accepted[] = [];
  const work = async (run: Run) => {
    results = spread(placed, repeats, await settled(db, first, await insert(db, first, run, false, at), run, false, at));
    if (results.some((r) => r.kind === "conflict")) throw refused;
  };
  try {
    const keyed = first.some((p) => p.message.key !== null);
    await repaired(db, placed, () =>
      keyed ? db.connection.transaction("enqueue", (client) => work(clientRun(client))) : work(ownRun(db)),
    );
  } catch (thrown) {
    if (thrown !== refused) throw thrown;
  }
  return results;
}

/** Independent callers in one statement: each gets its own answer. */
async function insertEach(db: Db, placed: readonly Placed[], at: At): Promise<Accepted[]> {
  const missing = await repaired(db, placed, () => insert(db, placed, ownRun(db), false, at));
  return settled(db, placed, missing, ownRun(db), false, at);
}

async function insertOneByOne(db: Db, placed: readonly Placed[], at: At): Promise<Accepted[]> {
  const all: Accepted[] = [];
  for (const each of placed) all.push(...(await insertEach(db, [each], at)));
  return all;
}

const clientRun =
  (client: Queryable): Run =>
  async (text, values) => {
    const config = { text, values, rowMode: "array" };
    return (await (client as unknown as { query(c: object): Promise<{ rows: (string | null)[][] }> }).query(config)).rows;
  };

const ownRun =
  (db: Db): Run =>
  (text, values, name) =>
    db.connection.rows("enqueue", text, values, { name }) as Promise<(string | null)[][]>;

/** Makes missing day partitions for the ids at hand and tries once more: upkeep should have made them, accepting must not depend on it. */
async function repaired<T>(db: Db, placed: readonly Placed[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const cause = thrown instanceof MakegoodError ? thrown.cause : thrown;
    if (!isMissingPartition(cause)) throw thrown;
    const wall = db.clock.wallMs();
    const days = [...new Set(placed.map(({ message }) => dayOf(idTimeMs(message.id))))];
    if (days.some((day) => Math.abs(day - wall) > CLOCK_OFF_MS_MAX)) throw thrown;
    await ensurePartitions(db.connection, db.s, days);
    return work();
  }
}

function notInTransaction(): MakegoodError {
  return new MakegoodError(
    "not_a_transaction",
    "`tx` is not inside a transaction, so the message would commit without your own write: BEGIN first and pass that connection",
  );
}
