/**
 * Proves that a server really serves, and serves this directory: by connecting to it with the password and asking. Makes the
 * database `makegood` when it is not there yet.
 */
import { stat } from "node:fs/promises";
import pg from "pg";
import { errorText } from "../../../message/errors.js";
import { codeOf, embeddedFailed } from "./failure.js";
import { ROLE } from "./initialize.js";
export const DATABASE = "makegood";
const CONNECT_MS_MAX = 5_000;
export function urlOf(port, password, database = DATABASE) {
    return `postgres://${ROLE}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}
/** What a server that is starting or stopping answers. */
const EXPECTED = ["57P03", "57P01", "ECONNREFUSED", "ECONNRESET"];
/** It is asked many times a second; the same reason is told once. */
const told = new WeakMap();
/** True when it serves; false when it does not answer (yet): the caller knows whether to wait. Throws what waiting cannot mend. */
export async function serves(port, credentials) {
    const { directory, password, log } = credentials;
    try {
        await checkDirectory(port, password, directory.pgdata);
        return true;
    }
    catch (error) {
        const code = codeOf(error) ?? "";
        if (code === "3D000")
            return (await createDatabase(port, password)) && serves(port, credentials);
        if (code === "28P01" || code === "28000") {
            throw embeddedFailed(`The PostgreSQL that runs on ${directory.pgdata} does not accept the password in the file beside it. ` +
                `Put the right password back, or stop that server, remove the file \`password\`, and start again.`, { pgdata: directory.pgdata, port }, error);
        }
        if (code === "embedded_failed")
            throw error;
        // Starting, stopping, not listening yet: it may serve a little later. Anything else is told, and tried again too.
        const reason = `PostgreSQL on port ${port} does not answer yet: ${errorText(error)}`;
        if (!EXPECTED.includes(code) && told.get(credentials) !== reason)
            log(reason);
        told.set(credentials, reason);
        return false;
    }
}
async function checkDirectory(port, password, pgdata) {
    const rows = await ask(urlOf(port, password), "select current_setting('data_directory') as directory");
    const directory = String(rows[0]?.directory);
    if (directory === pgdata)
        return;
    const [asked, ours] = await Promise.all([stat(directory).catch(() => undefined), stat(pgdata)]);
    if (asked?.ino === ours.ino && asked.dev === ours.dev)
        return;
    throw embeddedFailed(`The server on port ${port} works in ${directory}, not in ${pgdata}.`, { port, directory, pgdata });
}
/** False when the server went away meanwhile. */
async function createDatabase(port, password) {
    try {
        await ask(urlOf(port, password, "postgres"), `create database ${DATABASE}`);
        return true;
    }
    catch (error) {
        const code = codeOf(error) ?? "";
        if (code === "42P04")
            return true; // made meanwhile
        // Only what the server itself says about the statement is final (a full disk, say); 57 is "shutting down".
        if (!/^(?!57)[0-9A-Z]{5}$/.test(code))
            return false;
        throw embeddedFailed(`The database ${DATABASE} could not be made: ${errorText(error)}`, { port }, error);
    }
}
async function ask(url, text) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS_MAX, query_timeout: 60_000 });
    client.on("error", () => undefined); // a server that dies between two calls is told by the next call
    try {
        await client.connect();
        return (await client.query(text)).rows;
    }
    finally {
        await client.end().catch(() => undefined);
    }
}
//# sourceMappingURL=connection.js.map