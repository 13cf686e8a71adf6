/**
 * A PostgreSQL of a test's own, with the settings that the test wants, the wrong ones too: the product's own server would not take them.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { locateNative } from "../../src/store/postgres/embedded/binaries.ts";
import { atEnd } from "../support/at-end.ts";
import { copyTemplate } from "../support/embedded-template.ts";
import { freePort } from "../support/free-port.ts";
import { until, workspace } from "../support/processes.ts";

const running: ChildProcess[] = [];

atEnd(async () => {
  for (const child of running.splice(0)) {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.exitCode === null && child.kill("SIGQUIT")) await ended;
  }
});

export interface OwnPostgres {
  readonly url: string;
  sql(text: string): Promise<void>;
}

export async function ownPostgres(settings: Readonly<Record<string, string>>): Promise<OwnPostgres> {
  const folder = await workspace();
  await copyTemplate(folder);
  const data = join(folder, "pgdata");
  const rules = join(data, "pg_hba.conf");
  await writeFile(rules, (await readFile(rules, "utf8")).replaceAll("scram-sha-256", "trust"));
  const port = await freePort();
  const all = { port: String(port), listen_addresses: "127.0.0.1", unix_socket_directories: "", ...settings };
  const args = ["-D", data, ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
  // As root the template belongs to another user, who runs it.
  const { uid, gid } = await stat(data);
  const child = spawn(join(locateNative(), "bin", "postgres"), args, {
    cwd: folder,
    uid,
    gid,
    stdio: ["ignore", "ignore", "pipe"],
  });
  running.push(child);
  let log = "";
  child.stderr?.on("data", (text) => {
    log += String(text);
  });
  const url = `postgres://makegood@127.0.0.1:${port}/makegood`;
  const sql = async (text: string): Promise<void> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(text).finally(() => client.end());
  };
  await until("PostgreSQL answers", async () => {
    if (child.exitCode !== null) throw new Error(`PostgreSQL did not start: ${log}`);
    return sql("select 1").then(
      () => true,
      () => false,
    );
  });
  return { url, sql };
}
