/**
 * Our own connections: a pool with a handler on every error event (an idle connection that breaks must not end the process),
 * bounded waits, and one door `run` that tries short conflicts again and speaks our error codes. It also finds out whether
 * a pooler stands between: named statements and LISTEN are only for direct connections.
 */
import pg from "pg";
import { MakegoodError } from "../../message/errors.js";
import { sleep, systemClock } from "../../platform/clock.js";
import { systemRandom } from "../../platform/random.js";
import { asStoreError, isTransient } from "./sql-errors.js";
const TRIES_MAX = 6;
/** Text as it comes: our statements decide what to parse, and a batch of thousands must not pay for the rest. */
const asText = { getTypeParser: () => (value) => value };
export function clientConfig(options) {
    return {
        connectionString: options.url,
        connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
        query_timeout: options.queryTimeoutMs ?? 30_000,
        keepAlive: true,
        keepAliveInitialDelayMillis: 10_000,
        application_name: "makegood",
    };
}
export function createConnection(options) {
    const pool = new pg.Pool({ ...clientConfig(options), max: options.poolMax ?? 10, idleTimeoutMillis: 30_000 });
    const ignore = () => { };
    pool.on("error", ignore);
    pool.on("connect", (client) => client.on("error", ignore));
    let direct = false;
    let ending;
    let address = { host: "", port: 0 };
    async function retried(during, reads, work) {
        if (ending !== undefined)
            throw new MakegoodError("closed", `${during}: this store is closed`);
        for (let attempt = 1;; attempt++) {
            try {
                return await work();
            }
            catch (thrown) {
                if (!isTransient(thrown) || attempt >= TRIES_MAX)
                    throw asStoreError(thrown, during, !reads);
                await sleep(systemClock, 2 ** attempt * (1 + systemRandom.next()));
            }
        }
    }
    return {
        pool,
        get direct() {
            return direct;
        },
        get address() {
            return address;
        },
        async open() {
            await retried("connect", true, async () => {
                const client = await pool.connect();
                try {
                    const { rows } = await client.query("select pg_backend_pid()::text as pid");
                    address = { host: client.host, port: client.port };
                    direct = rows[0]?.pid === String(client.processID);
                }
                finally {
                    client.release();
                }
            });
        },
        rows(during, text, values, { reads = false, name } = {}) {
            return retried(during, reads, async () => {
                const config = { text, values, rowMode: "array", types: asText, ...(name && direct ? { name } : {}) };
                return (await pool.query(config)).rows;
            });
        },
        transaction(during, work) {
            return retried(during, false, async () => {
                const client = await pool.connect();
                try {
                    await client.query("begin");
                    const result = await work(client);
                    await client.query("commit");
                    client.release();
                    return result;
                }
                catch (thrown) {
                    // A failed rollback means a broken connection; release(true) drops it, and the server rolls back by itself.
                    const broken = await client.query("rollback").then(() => false, () => true);
                    client.release(broken);
                    throw thrown;
                }
            });
        },
        close() {
            ending ??= pool.end();
            return ending;
        },
    };
}
//# sourceMappingURL=connection.js.map