/**
 * Makes the data of a new server. initdb works in a folder of its own, which becomes `pgdata` by one rename when everything
 * in it is on disk: a process killed half-way leaves a folder that nobody reads, and the next start removes it.
 */
import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemRandom } from "../../../platform/random.ts";
import type { Binaries } from "./binaries.ts";
import type { DataDirectory } from "./data-directory.ts";
import { codeOf, embeddedFailed, unless } from "./failure.ts";
import { runProgram } from "./run-program.ts";
import { nonce, syncFolder, writeWhole } from "./write-whole.ts";

export const ROLE = "makegood";
const UNFINISHED = "pgdata.new-";
/** `writeWhole` of these files is under the lock, too: what is there when it is taken belongs to the dead. */
const LEFT_BY_THE_DEAD = [UNFINISHED, "password.new-", "port.new-"];

export const CONNECTIONS_MAX = 200;

/** Defaults that an operator may change in postgresql.conf. What durability needs is not here: see launch.ts. */
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

/** Readable by its owner alone, and outside of `pgdata`. Undefined before the first start, and when it was lost. */
export async function readPassword(directory: DataDirectory): Promise<string | undefined> {
  return (await unless(["ENOENT"], readFile(join(directory.path, "password"), "utf8")))?.trim() || undefined;
}

export function makePassword(): string {
  return Buffer.from(systemRandom.bytes(24)).toString("hex");
}

export async function savePassword(directory: DataDirectory, password: string): Promise<void> {
  await writeWhole(join(directory.path, "password"), `${password}\n`, directory.own);
}

/** Only under the lock, and only when `pgdata` is missing or empty. */
export async function initialize(directory: DataDirectory, binaries: Binaries, password: string): Promise<void> {
  const fresh = join(directory.path, `${UNFINISHED}${process.pid}-${nonce()}`);
  const passwordFile = `${fresh}.password`;
  try {
    await mkdir(fresh, { mode: 0o700 });
    await writeFile(passwordFile, password, { mode: 0o600, flag: "wx" });
    await giveToServer(directory, fresh, passwordFile);
    const args = ["--pgdata", fresh, "--username", ROLE, "--pwfile", passwordFile, "--auth", "scram-sha-256"];
    const ran = await runProgram(
      binaries.initdb,
      [...args, "--data-checksums", "--encoding", "UTF8", "--locale", "C"],
      directory.user,
      {
        cwd: directory.path,
      },
    );
    if (ran.code !== 0) {
      throw embeddedFailed(
        `PostgreSQL could not make its data in ${directory.path} (initdb ended with ${ran.signal ?? ran.code}): ` +
          `${lastLines(ran.output)} Look at the space and the permissions there, or set MAKEGOOD_DATA_DIR or DATABASE_URL.`,
        { dataDir: directory.path, output: ran.output },
      );
    }
    await appendSettings(join(fresh, "postgresql.conf"));
    await syncFolder(fresh);
    await rename(fresh, directory.pgdata);
    await syncFolder(directory.path);
  } catch (error) {
    await removeTree(fresh);
    throw codeOf(error) === "embedded_failed" ? error : unexpected(directory, error);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** What killed processes left half-made. An initdb without a parent may still write there; then the next start removes it. */
export async function removeUnfinished(directory: DataDirectory, log: (message: string) => void): Promise<void> {
  for (const entry of await readdir(directory.path)) {
    if (!LEFT_BY_THE_DEAD.some((prefix) => entry.startsWith(prefix))) continue;
    log(`removing ${entry}, which a killed process left half-made`);
    await removeTree(join(directory.path, entry));
  }
}

/**
 * Gives the server a new password when the file was lost: who owns the data owns the server. Only while no server runs.
 */
export async function resetPassword(directory: DataDirectory, binaries: Binaries, password: string): Promise<void> {
  const statement = `ALTER ROLE ${ROLE} PASSWORD '${password}'\n`;
  const args = ["--single", "-D", directory.pgdata, "postgres"];
  const ran = await runProgram(binaries.postgres, args, directory.user, { cwd: directory.path, input: statement });
  // A single-user server answers a failed statement with an ERROR line and still ends with 0.
  if (ran.code !== 0 || /\b(ERROR|FATAL|PANIC):/.test(ran.output)) {
    throw embeddedFailed(
      `The password file of ${directory.path} was missing, and a new password could not be set: ${lastLines(ran.output)}`,
      { dataDir: directory.path },
    );
  }
}

/** root made it, the server's user works in it. */
async function giveToServer({ user }: DataDirectory, ...paths: string[]): Promise<void> {
  for (const path of paths) if (user.uid !== undefined) await chown(path, user.uid, user.gid ?? user.uid);
}

async function appendSettings(path: string): Promise<void> {
  const file = await open(path, "a");
  try {
    await file.writeFile(SETTINGS);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function removeTree(path: string): Promise<void> {
  await chmod(path, 0o700).catch(() => undefined);
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }).catch(() => undefined);
}

function unexpected(directory: DataDirectory, error: unknown): Error {
  return embeddedFailed(
    `The data of ${directory.path} could not be made: ${error instanceof Error ? error.message : error}. ` +
      `Look at the space and the permissions there, or set MAKEGOOD_DATA_DIR or DATABASE_URL.`,
    { dataDir: directory.path },
    error,
  );
}

function lastLines(output: string): string {
  return output.trim().split("\n").slice(-5).join(" ");
}
