/**
 * Makes the data of a new server, and keeps its password. initdb works in a folder of its own, which becomes `pgdata` by one
 * rename when everything in it is on disk: a process killed half-way leaves a folder that nobody reads, and the next start
 * removes it. All of it only under the lock.
 */
import { appendFile, chmod, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorText } from "../../../message/errors.ts";
import { systemRandom } from "../../../platform/random.ts";
import { syncFolder } from "../../../platform/sync-folder.ts";
import type { Binaries } from "./binaries.ts";
import { ROLE } from "./connection.ts";
import { type DataDirectory, nonce, stateOfData, writeWhole } from "./data-directory.ts";
import { embeddedFailed, unless } from "./failure.ts";
import { findServer } from "./find-server.ts";
import { giveTo, runAs } from "./server-user.ts";

/** These are made under the lock: what is there when it is taken belongs to the dead. (`port`: of the version before.) */
const LEFT_BY_THE_DEAD = /^(pgdata|password|port)\.new-/;

export const CONNECTIONS_MAX = 200;

/** Defaults that an operator may change in postgresql.conf. What durability needs is not here: see start-server.ts. */
const SETTINGS = `
# Makegood's defaults; change them here. fsync, synchronous_commit, full_page_writes, the port and the address are given on
# the command line and cannot be changed here.
timezone = 'UTC'
log_timezone = 'UTC'
# a process of makegood uses at most 11
max_connections = ${CONNECTIONS_MAX}
shared_buffers = 128MB
log_checkpoints = off
`;

/** Makes the data if there is none, and returns the password that opens it. */
export async function prepareData(directory: DataDirectory, binaries: Binaries): Promise<string> {
  const { path, pgdata, log } = directory;
  const state = await stateOfData(pgdata, binaries.major);
  await removeUnfinished(directory);
  const passwordFile = join(path, "password");
  // Readable by its owner alone, and outside of `pgdata`. Absent before the first start, and when it was lost.
  const found = (await unless(["ENOENT"], readFile(passwordFile, "utf8")))?.trim();
  if (found && state === "present") return found;
  const password = found || Buffer.from(systemRandom.bytes(24)).toString("hex");
  if (state === "missing") {
    log(`making a new PostgreSQL ${binaries.version} in ${path}`);
    await writeWhole(passwordFile, `${password}\n`, directory.own);
    await initialize(directory, binaries, password);
    return password;
  }
  const running = await findServer(directory);
  if (running) {
    const { pid } = running.identity;
    throw embeddedFailed(
      `The file ${passwordFile} is missing, and the server (pid ${pid}) cannot be opened without it. ` +
        `Put it back, or stop that server (kill -INT ${pid}) and start again: then a new password is set.`,
      { dataDir: path, pid },
    );
  }
  log(`the password file of ${path} was missing; a new password is set`);
  // In this order: a crash between the two leaves the file missing, and the next start does it again.
  await resetPassword(directory, binaries, password);
  await writeWhole(passwordFile, `${password}\n`, directory.own);
  return password;
}

async function initialize(directory: DataDirectory, binaries: Binaries, password: string): Promise<void> {
  const { path, pgdata, user } = directory;
  const fresh = join(path, `pgdata.new-${process.pid}-${nonce()}`);
  const passwordFile = `${fresh}.password`;
  try {
    await mkdir(fresh, { mode: 0o700 });
    await writeFile(passwordFile, password, { mode: 0o600, flag: "wx" });
    await giveTo(user, fresh, passwordFile);
    const access = ["--username", ROLE, "--pwfile", passwordFile, "--auth", "scram-sha-256"];
    const args = ["--pgdata", fresh, ...access, "--data-checksums", "--encoding", "UTF8", "--locale", "C"];
    const { ended, output } = await runAs(user, binaries.initdb, args, { cwd: path });
    if (ended !== 0) throw embeddedFailed(`initdb ended with ${ended}: ${lastLines(output)}`, { output });
    await appendFile(join(fresh, "postgresql.conf"), SETTINGS, { flush: true });
    await syncFolder(fresh);
    await rename(fresh, pgdata);
    await syncFolder(path);
  } catch (error) {
    await removeTree(fresh);
    throw embeddedFailed(
      `The data of PostgreSQL could not be made in ${path}: ${errorText(error)}. ` +
        `Look at the space and the permissions there, or set MAKEGOOD_DATA_DIR or DATABASE_URL.`,
      { dataDir: path },
      error,
    );
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** What killed processes left half-made. An initdb without a parent may still write there; then the next start removes it. */
async function removeUnfinished({ path, log }: DataDirectory): Promise<void> {
  for (const entry of await readdir(path)) {
    if (!LEFT_BY_THE_DEAD.test(entry)) continue;
    log(`removing ${entry}, which a killed process left half-made`);
    await removeTree(join(path, entry));
  }
}

async function removeTree(path: string): Promise<void> {
  await chmod(path, 0o700).catch(() => undefined);
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }).catch(() => undefined);
}

/** Gives the server a new password when the file was lost: who owns the data owns the server. Only while no server runs. */
async function resetPassword({ path, pgdata, user }: DataDirectory, binaries: Binaries, password: string): Promise<void> {
  const input = `ALTER ROLE ${ROLE} PASSWORD '${password}'\n`;
  const { ended, output } = await runAs(user, binaries.postgres, ["--single", "-D", pgdata, "postgres"], { cwd: path, input });
  // A single-user server answers a failed statement with an ERROR line and still ends with 0.
  if (ended !== 0 || /\b(ERROR|FATAL|PANIC):/.test(output)) {
    throw embeddedFailed(`The password file of ${path} was missing, and a new password could not be set: ${lastLines(output)}`, {
      dataDir: path,
    });
  }
}

function lastLines(output: string): string {
  return output.trim().split("\n").slice(-5).join(" ");
}
