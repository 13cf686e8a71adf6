/**
 * The caller's transaction: anything with `query(text, values)`. A pool is refused (its statements are in nobody's
 * transaction), and so is a node-postgres client that has not begun one.
 */
import { MakegoodError } from "../../message/errors.js";
export function refusePool(tx) {
    const it = tx;
    if (typeof it.query !== "function") {
        throw new MakegoodError("not_a_transaction", "`tx` has no query(text, values): pass a client inside a transaction, or an adapter of makegood/adapters");
    }
    if (it.totalCount !== undefined || it.idleCount !== undefined) {
        throw new MakegoodError("not_a_transaction", "`tx` is a pool: each of its statements may run on another connection; connect(), BEGIN, and pass that client");
    }
    if (it.getTransactionStatus?.() === "I") {
        throw new MakegoodError("not_a_transaction", "`tx` has not begun a transaction: BEGIN first, or leave `tx` out");
    }
}
/** Runs a statement of ours in it; rows come back as arrays whatever the driver makes of them. */
export async function queryIn(db, tx, text, values, name) {
    if (isOurServer(db, tx)) {
        const client = tx;
        return (await client.query({ text, values, rowMode: "array", ...(name ? { name } : {}) })).rows;
    }
    const { rows } = await tx.query(text, values);
    return rows.map((row) => (Array.isArray(row) ? row : Object.values(row)));
}
/** A node-postgres client of the server that we found to be direct may prepare statements; anything else may sit behind a pooler. */
function isOurServer(db, tx) {
    const it = tx;
    if (!db.connection.direct || typeof it.processID !== "number" || it.connection === undefined)
        return false;
    const ours = db.connection.address;
    return it.host === ours.host && it.port === ours.port;
}
//# sourceMappingURL=transaction.js.map