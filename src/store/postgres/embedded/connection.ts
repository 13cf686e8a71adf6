/**
 * Proves that a server really serves, and serves this directory: by connecting to it with the password and asking. Makes the
 * database `makegood` when it is not there yet.
 */
import { stat } from "node:fs/promises";
import pg from "pg";
import { errorText } from "../../../message/errors.ts";
import { codeOf, embeddedFailed } from "./failure.ts";

export const ROLE = "makegood";
const DATABASE = "makegood";
const CONNECT_MS_MAX = 5_000;

export function urlOf(port: number, password: string, database: string = DATABASE): string {
  return `postgres://${ROLE}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

/** Undefined when it serves, else why it does not (yet): starting, stopping, not listening. Throws what waiting cannot mend. */
export async function whyNotServing(port: number, password: string, pgdata: string): Promise<string | undefined> {
  const question = "select current_setting('data_directory') as directory";
  try {
    const rows = await ask(urlOf(port, password), question).catch(async (error: unknown) => {
      if (codeOf(error) !== "3D000") throw error;
      await createDatabase(port, password);
      return ask(urlOf(port, password), question);
    });
    await refuseOtherDirectory(port, String(rows[0]?.directory), pgdata);
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === "embedded_failed") throw error;
    if (code !== "28P01" && code !== "28000") return errorText(error);
    throw embeddedFailed(
      `The PostgreSQL that runs on ${pgdata} does not accept the password in the file beside it. ` +
        `Put the right password back, or stop that server, remove the file \`password\`, and start again.`,
      { pgdata, port },
      error,
    );
  }
}

async function refuseOtherDirectory(port: number, directory: string, pgdata: string): Promise<void> {
  if (directory === pgdata) return;
  const [asked, ours] = await Promise.all([stat(directory).catch(() => undefined), stat(pgdata)]);
  if (asked?.ino === ours.ino && asked.dev === ours.dev) return;
  throw embeddedFailed(`The server on port ${port} works in ${directory}, not in ${pgdata}.`, { port, directory, pgdata });
}

async function createDatabase(port: number, password: string): Promise<void> {
  try {
    await ask(urlOf(port, password, "postgres"), `create database ${DATABASE}`);
  } catch (error) {
    const code = codeOf(error) ?? "";
    if (code === "42P04") return; // made meanwhile
    // Only what the server itself says about the statement is final (a full disk, say): 57 is "shutting down", E… an errno.
    if (!/^(?!57|E)[0-9A-Z]{5}$/.test(code)) throw error;
    throw embeddedFailed(`The database ${DATABASE} could not be made: ${errorText(error)}`, { port }, error);
  }
}

async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS_MAX, query_timeout: 60_000 });
  client.on("error", () => undefined); // a server that dies between two calls is told by the next call
  try {
    await client.connect();
    return (await client.query(text)).rows as Record<string, unknown>[];
  } finally {
    await client.end().catch(() => undefined);
  }
}
