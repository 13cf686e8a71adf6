/**
 * A real standby of a test's PostgreSQL, with the binaries that are there (no pg_basebackup): its files are copied while it serves, between
 * pg_backup_start and pg_backup_stop, and the copy follows the primary's log.
 */
import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { type OwnPostgres, ownPostgres } from "./own-postgres.ts";
import { until, workspace } from "./processes.ts";

const run = promisify(execFile);
export const STANDBY = "standby";

/** `link`: the primary's URL as the standby reaches it. It streams when this returns. */
export async function startStandby(primary: OwnPostgres, link: string): Promise<OwnPostgres> {
  const folder = await workspace();
  const pgdata = join(folder, "pgdata");
  await run("cp", ["-a", join(primary.folder, "password"), folder]);
  // One session begins and ends the copy.
  const session = new pg.Client({ connectionString: primary.url });
  await session.connect();
  await session.query("select pg_backup_start('standby', true)");
  // What vanishes meanwhile the log says, and cp complains of it.
  await run("cp", ["-a", primary.pgdata, pgdata]).catch(() => undefined);
  const { rows } = await session.query("select labelfile from pg_backup_stop(false)");
  await session.end();
  for (const name of ["postmaster.pid", "postmaster.opts"]) await rm(join(pgdata, name), { force: true });
  await writeFile(join(pgdata, "backup_label"), rows[0].labelfile as string);
  await writeFile(join(pgdata, "standby.signal"), "");
  const { uid, gid } = primary.user;
  if (uid !== undefined) await run("chown", ["-R", `${uid}:${gid}`, folder]);
  const { hostname, port, username, password } = new URL(link);
  const where = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`;
  const settings = { primary_conninfo: `${where} application_name=${STANDBY}` };
  const standby = await ownPostgres({ folder, filled: true, settings });
  const streams = `select from pg_stat_replication where application_name = '${STANDBY}' and state = 'streaming'`;
  await until("the standby follows", async () => (await primary.sql(streams)).length === 1);
  return standby;
}

/** From now on a commit waits until the standby has it on its disk. */
export async function commitsWait(primary: OwnPostgres): Promise<void> {
  await primary.sql(`alter system set synchronous_standby_names = '${STANDBY}'`);
  await primary.sql("select pg_reload_conf()");
  const synchronous = "select from pg_stat_replication where sync_state = 'sync'";
  await until("it waits for the standby", async () => (await primary.sql(synchronous)).length === 1);
}
