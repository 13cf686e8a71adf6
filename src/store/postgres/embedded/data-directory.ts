/**
 * The directory that holds everything of one embedded server: `pgdata`, the password, the log, the lock. It is made if
 * missing, and refused with the remedy if it cannot be written, or if the user PostgreSQL runs as cannot reach it. Data is
 * never copied or moved to get around that.
 */
import { chmod, chown, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../../../platform/clock.ts";
import { makeFolder } from "../../../platform/make-folder.ts";
import { systemRandom } from "../../../platform/random.ts";
import { syncFolder } from "../../../platform/sync-folder.ts";
import { codeOf, embeddedFailed, unless } from "./failure.ts";
import { chooseServerUser, isRoot, refuseUnreachable, type ServerUser } from "./server-user.ts";

export interface DataDirectory {
  /** Without symbolic links, so that two processes that come by different ways see one name. */
  readonly path: string;
  readonly pgdata: string;
  readonly user: ServerUser;
  readonly clock: Clock;
  readonly log: (message: string) => void;
  /** When root works in a directory of another user, what root makes there is given to that owner. */
  own(path: string): Promise<void>;
}

export async function openDirectory(dataDir: string, clock: Clock, log: (message: string) => void): Promise<DataDirectory> {
  const wanted = resolve(dataDir);
  let path: string;
  try {
    await make(wanted);
    path = await realpath(wanted);
    const probe = join(path, `.writable-${process.pid}-${nonce()}`);
    await writeFile(probe, "", { mode: 0o600 });
    await rm(probe);
  } catch (error) {
    throw embeddedFailed(
      `The data directory ${wanted} cannot be written by uid ${process.geteuid?.()}: ${codeOf(error) ?? error}. ` +
        `Set MAKEGOOD_DATA_DIR to a directory that this process can write, or make this one writable.`,
      { dataDir: wanted },
      error,
    );
  }
  const pgdata = join(path, "pgdata");
  const user = await chooseServerUser(pgdata);
  await refuseUnreachable(path, user);
  const { uid, gid } = await stat(path);
  const own = async (file: string) => {
    if (isRoot() && uid !== 0) await chown(file, uid, gid);
  };
  return { path, pgdata, user, clock, log, own };
}

/** Folders that we make: private for a normal user; as root passable, because the server's user must come through. */
async function make(path: string): Promise<void> {
  const first = await makeFolder(path);
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await chmod(made, isRoot() ? 0o711 : 0o700);
}

/** What stands in `pgdata`: nothing yet, or data of this major version. Anything else is refused; it may be a person's data. */
export async function stateOfData(pgdata: string, major: number): Promise<"missing" | "present"> {
  const entries = await unless(["ENOENT"], readdir(pgdata));
  if (entries === undefined || entries.length === 0) return "missing";
  const version = (await unless(["ENOENT"], readFile(join(pgdata, "PG_VERSION"), "utf8")))?.trim();
  if (version === undefined) {
    throw embeddedFailed(
      `${pgdata} is not empty and holds no PostgreSQL data (no PG_VERSION). ` +
        `Move it away, or set MAKEGOOD_DATA_DIR to another directory.`,
      { pgdata },
    );
  }
  if (version !== String(major)) {
    throw embeddedFailed(
      `The data in ${pgdata} was made by PostgreSQL ${version}; this version of Makegood brings PostgreSQL ${major}, which cannot ` +
        `read it. Nothing was changed. Either run a PostgreSQL ${version} server on that directory and set DATABASE_URL to it, or ` +
        `move the data: dump it from that server (pg_dump of version ${major}), start here with an empty MAKEGOOD_DATA_DIR, restore the dump.`,
      { pgdata, found: version, needed: major },
    );
  }
  return "present";
}

export function nonce(): string {
  return Buffer.from(systemRandom.bytes(6)).toString("hex");
}

/** Writes a small file so that a reader, a crash or a power loss sees the old one or the new one, never half of it. */
export async function writeWhole(path: string, text: string, own: (path: string) => Promise<void>): Promise<void> {
  const fresh = `${path}.new-${nonce()}`;
  try {
    await writeFile(fresh, text, { flag: "wx", mode: 0o600, flush: true });
    await own(fresh);
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}
