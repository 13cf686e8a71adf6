/**
 * Lets anybody on this machine into a test run's private server without a password: each of the thousands of connections that a run opens
 * would cost both sides milliseconds for a proof that nobody needs. Only the user `stranger`, who is none, is asked for a password, and refused.
 */
import { readFile, writeFile } from "node:fs/promises";
import pg from "pg";

export async function trustAll(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ hba_file: string }>("show hba_file");
    const file = rows[0]?.hba_file as string;
    const rules = (await readFile(file, "utf8")).replaceAll("scram-sha-256", "trust");
    await writeFile(file, `host all stranger all scram-sha-256\n${rules}`);
    await client.query("select pg_reload_conf()");
  } finally {
    await client.end();
  }
}
