/**
 * ENQUEUE: a batch in the caller's transaction, a batch in one of our own, or single messages of independent callers gathered
 * into one statement. Accepted means committed; a repeat of an id or of a key with the same payload is the same message (I1, I7).
 */
import { MakegoodError } from "../../message/errors.js";
import { clockSql } from "./clock-sql.js";
import { createCoalescer } from "./coalesce.js";
import { batchValues, shortValues } from "./enqueue-values.js";
import { KIND_ORDERED } from "./lane-table.js";
import { dayOf, ensurePartitions } from "./partitions.js";
import { isMissingPartition } from "./sql-errors.js";
import { enqueueBatch, enqueueOne, findKeys, sameMessage } from "./statements/enqueue.js";
import { queryIn, refusePool } from "./transaction.js";
/** `told` hears of the lanes that have new work, after their commit. */
export function createEnqueue(db, told) {
    const one = createCoalescer((batch) => insertEach(db, batch, {}), told);
    return async function enqueue(messages, { tx, atomic = "all", now } = {}) {
        if (tx)
            refusePool(tx);
        if (messages.length === 0)
            return [];
        const placed = await place(db, messages);
        if (tx)
            return insertIn(db, placed, tx, { now });
        const alone = messages.length === 1 || atomic === "each";
        if (alone && now === undefined)
            return Promise.all(placed.map(one));
        const accepted = alone ? await insertOneByOne(db, placed, { now }) : await insertAll(db, placed, { now });
        if (alone || !accepted.some((a) => a.kind === "conflict"))
            told(placed.map((p) => p.lane));
        return accepted;
    };
}
async function place(db, messages) {
    const placed = [];
    for (const message of messages) {
        const { topic, tenantId, priority, orderingKey } = message;
        const lane = db.lanes.known(topic, tenantId, priority, orderingKey) ?? (await db.lanes.of(topic, tenantId, priority, orderingKey));
        placed.push({ message, lane });
    }
    return placed;
}
/** Sends one short or one batch statement; returns the ids that were not inserted because their key exists. */
async function insert(db, placed, run, tx, { now }) {
    const clock = clockSql(now);
    const [only] = placed;
    if (placed.length === 1 && only && only.lane.kind !== KIND_ORDERED && !only.message.directTry) {
        const keyed = only.message.key !== null;
        const name = now === undefined ? `mg_enqueue_${keyed ? "keyed" : "plain"}_${tx ? "tx" : "own"}` : undefined;
        const [row] = await run(enqueueOne(db.s, clock, { keyed, tx }), shortValues(only), name);
        if (row?.[1] === "false")
            throw notInTransaction();
        return row?.[0] === "1" ? new Set() : new Set([only.message.id]);
    }
    const { parts, values } = batchValues(placed, tx);
    const [row] = await run(enqueueBatch(db.s, clock, parts), values);
    if (row?.[1] === "false")
        throw notInTransaction();
    return new Set(row?.[0]?.split(",") ?? []);
}
/** Whose the missing ones are; a key whose owner is gone again (pruned in between) stays undefined. */
async function judge(db, placed, missing, run) {
    const results = placed.map(({ message }) => missing.has(message.id) ? undefined : { kind: "accepted", id: message.id });
    if (missing.size === 0)
        return results;
    const asked = placed.flatMap(({ message, lane }, i) => missing.has(message.id) && message.key !== null ? [{ i, topic_id: lane.topicId, tenant: lane.tenant, key: message.key }] : []);
    const owners = asked.length > 0 ? await run(findKeys(db.s), [JSON.stringify(asked)]) : [];
    for (const [index, id, hash] of owners) {
        const i = Number(index);
        const message = placed[i]?.message;
        // The same id means that an earlier try of this very call did commit.
        const kind = id === message.id ? "accepted" : hash === message.payloadHash ? "duplicate" : "conflict";
        results[i] = { kind, id: id };
    }
    for (const [i, { message }] of placed.entries()) {
        if (results[i] || message.key !== null)
            continue;
        const [row] = await run(sameMessage(db.s), [message.id, message.payload]);
        if (row)
            results[i] = { kind: row[0] === "true" ? "accepted" : "conflict", id: message.id };
    }
    return results;
}
/** Keys that come twice in one call are settled here: the statement itself must see each key once. */
export function withoutRepeats(placed) {
    const seen = new Map();
    const first = [];
    const repeats = new Map();
    placed.forEach((p, i) => {
        const { key } = p.message;
        const name = key === null ? `id\u0000${p.message.id}` : `${p.lane.topicId}\u0000${p.lane.tenant}\u0000${key}`;
        const earlier = seen.get(name);
        if (earlier !== undefined)
            repeats.set(i, earlier);
        else {
            seen.set(name, i);
            first.push(p);
        }
    });
    return { first, repeats };
}
function spread(placed, repeats, results) {
    let next = 0;
    const all = [];
    for (const [i, p] of placed.entries()) {
        const earlier = repeats.get(i);
        if (earlier === undefined) {
            all.push(results[next++]);
            continue;
        }
        const original = placed[earlier];
        const answer = all[earlier];
        const same = original.message.payloadHash === p.message.payloadHash && answer.kind !== "conflict";
        all.push({ kind: same ? "duplicate" : "conflict", id: answer.id });
    }
    return all;
}
async function insertIn(db, placed, tx, at) {
    const run = (text, values, name) => queryIn(db, tx, text, values, name);
    const { first, repeats } = withoutRepeats(placed);
    // One refuses all: what a batch inserted before a conflict came to light must not be there if the caller commits all the same.
    const undoable = placed.length > 1 && placed.some((p) => p.message.key !== null);
    if (undoable)
        await tx.query("savepoint makegood_enqueue");
    const missing = await insert(db, first, run, true, at);
    const results = spread(placed, repeats, await settled(db, first, missing, run, true, at));
    if (undoable) {
        const refused = results.some((r) => r.kind === "conflict");
        await tx.query(`${refused ? "rollback to" : "release"} savepoint makegood_enqueue`);
    }
    return results;
}
/** Judges the missing; a key that was pruned between the two statements is simply inserted again, once. */
async function settled(db, placed, missing, run, tx, at) {
    const results = await judge(db, placed, missing, run);
    const again = placed.filter((_, i) => results[i] === undefined);
    if (again.length > 0) {
        const second = await judge(db, again, await insert(db, again, run, tx, at), run);
        for (const [i, p] of placed.entries())
            results[i] ??= second[again.indexOf(p)];
    }
    return results.map((result) => {
        if (!result)
            throw new MakegoodError("retry_transaction", "a key was deleted and taken again while it was looked up; run the call again");
        return result;
    });
}
/** One transaction of our own; a conflict rolls all of it back. */
async function insertAll(db, placed, at) {
    const { first, repeats } = withoutRepeats(placed);
    const refused = Symbol("refused");
    let results = [];
    const work = async (run) => {
        results = spread(placed, repeats, await settled(db, first, await insert(db, first, run, false, at), run, false, at));
        if (results.some((r) => r.kind === "conflict"))
            throw refused;
    };
    try {
        const keyed = first.some((p) => p.message.key !== null);
        await repaired(db, placed, () => keyed ? db.connection.transaction("enqueue", (client) => work(clientRun(client))) : work(ownRun(db)));
    }
    catch (thrown) {
        if (thrown !== refused)
            throw thrown;
    }
    return results;
}
/** Independent callers in one statement: each gets its own answer. */
async function insertEach(db, placed, at) {
    const missing = await repaired(db, placed, () => insert(db, placed, ownRun(db), false, at));
    return settled(db, placed, missing, ownRun(db), false, at);
}
async function insertOneByOne(db, placed, at) {
    const all = [];
    for (const each of placed)
        all.push(...(await insertEach(db, [each], at)));
    return all;
}
const clientRun = (client) => async (text, values) => {
    const config = { text, values, rowMode: "array" };
    return (await client.query(config)).rows;
};
const ownRun = (db) => (text, values, name) => db.connection.rows("enqueue", text, values, { name });
/** Makes missing day partitions for the ids at hand and tries once more: upkeep should have made them, accepting must not depend on it. */
async function repaired(db, placed, work) {
    try {
        return await work();
    }
    catch (thrown) {
        const cause = thrown instanceof MakegoodError ? thrown.cause : thrown;
        if (!isMissingPartition(cause))
            throw thrown;
        const wall = db.clock.wallMs();
        const days = [
            ...new Set(placed.map(({ message }) => dayOf(Number.parseInt(message.id.slice(0, 8) + message.id.slice(9, 13), 16)))),
        ];
        if (days.some((day) => Math.abs(day - wall) > 9 * 86_400_000))
            throw thrown;
        await ensurePartitions(db.connection, db.s, days);
        return work();
    }
}
function notInTransaction() {
    return new MakegoodError("not_a_transaction", "`tx` is not inside a transaction, so the message would commit without your own write: BEGIN first and pass that connection");
}
//# sourceMappingURL=enqueue.js.map