/**
 * Which processes are at a data directory: one makes, starts or stops its server and holds the lock; any number use the
 * server, and the last one to leave stops it. Each says so with a file named after itself. A process in this place is judged
 * by its identity; one elsewhere (another container on the same volume) by whether its file is still being touched, because
 * its pid means nothing here and two servers on one directory would destroy it.
 */
import { mkdir, readdir, rename, rm, rmdir, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Clock, sleep } from "../../../platform/clock.ts";
import { type Loop, startLoop } from "../../../platform/loop.ts";
import { here, identityName, isRunning, myIdentity, parseIdentity } from "../../../platform/process-identity.ts";
import type { DataDirectory } from "./data-directory.ts";
import { embeddedFailed, succeeds, unless } from "./failure.ts";

const TOUCH_EVERY_MS = 2_000;
/** Three touches missed: the process elsewhere is gone. */
const SILENT_MS = 6_500;
/** A file this old need not be watched first. */
const LONG_SILENT_MS = 60_000;

const LOCK_POLL_MS = 20;
/** Longer than any start should take, crash recovery included; then a person has to look. */
const LOCK_WAIT_MS_MAX = 900_000;
const LOG_EVERY_MS = 10_000;
/** A rolling replacement of containers overlaps for a while; longer than this is a mistake. */
const ELSEWHERE_WAIT_MS = 60_000;
const NOT_FREE = ["ENOTEMPTY", "EEXIST"];

let counter = 0;
/** Several locks and registrations of one process are several: each has a name of its own. */
const myName = async (): Promise<string> => `${identityName(await myIdentity())}-${counter++}`;

/**
 * The lock is a folder with one file named after its holder. Taking it is a rename onto an absent or empty folder, which the
 * system does atomically and refuses while the folder is not empty; a dead holder's file is removed by its own name, so a
 * live holder is never removed by mistake.
 */
export async function withLock<T>(directory: DataDirectory, run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const held = await takeLock(directory, signal);
  const touching = keepTouching(directory.clock, held);
  try {
    return await run();
  } finally {
    await touching.stop();
    // ENOENT: the whole directory was removed under us; then there is nothing to give back.
    await unless(["ENOENT"], unlink(held));
    await removeEmpty(dirname(held));
  }
}

async function takeLock(directory: DataDirectory, signal?: AbortSignal): Promise<string> {
  const lock = join(directory.path, "lock");
  const name = await myName();
  const prepared = join(directory.path, `lock.new-${name}`);
  await mkdir(prepared);
  try {
    await writeFile(join(prepared, name), "");
    await directory.own(prepared);
    await directory.own(join(prepared, name));
    await putInPlace(prepared, lock, directory, signal);
  } catch (error) {
    await rm(prepared, { recursive: true, force: true });
    throw error;
  }
  await removePreparedByTheDead(directory.path);
  return join(lock, name);
}

async function putInPlace(prepared: string, lock: string, { clock, log }: DataDirectory, signal?: AbortSignal): Promise<void> {
  const presenceOf = createWitness(clock);
  const startedMs = clock.monotonicMs();
  let loggedMs = startedMs;
  while (!(await succeeds(NOT_FREE, rename(prepared, lock)))) {
    const holder = (await unless(["ENOENT"], readdir(lock)))?.[0];
    if (holder === undefined) await removeEmpty(lock);
    else if ((await presenceOf(join(lock, holder))) === "gone") {
      log(`took over the lock of a process that is gone (${holder})`);
      await unless(["ENOENT"], unlink(join(lock, holder)));
      continue;
    }
    const nowMs = clock.monotonicMs();
    if (signal?.aborted) throw embeddedFailed(`Stopped while waiting for ${lock}.`, { lock, holder });
    if (nowMs - startedMs > LOCK_WAIT_MS_MAX) {
      throw embeddedFailed(
        `Process ${holder} has held ${lock} for ${LOCK_WAIT_MS_MAX / 60_000} minutes. See what it does, or end it, and start again.`,
        { lock, holder },
      );
    }
    if (nowMs - loggedMs > LOG_EVERY_MS) {
      loggedMs = nowMs;
      log(`waiting for process ${holder}, which holds ${lock}`);
    }
    await sleep(clock, LOCK_POLL_MS, signal);
  }
}

/** Not every file system renames onto an empty folder. Safe: a lock that was taken meanwhile is not empty and stays. */
async function removeEmpty(lock: string): Promise<void> {
  await unless(["ENOENT", ...NOT_FREE], rmdir(lock));
}

async function removePreparedByTheDead(path: string): Promise<void> {
  for (const entry of await readdir(path)) {
    if (!entry.startsWith("lock.new-")) continue;
    // One elsewhere stays: it may be live, and an empty folder more costs nothing.
    const gone = (await runsHere(entry.slice("lock.new-".length))) === false;
    if (gone) await rm(join(path, entry), { recursive: true, force: true });
  }
}

/** That this process uses the server: a file in `attached/`. The list is read and changed only under the lock. */
export interface Registration {
  remove(): Promise<void>;
  /** Whether a live process of this place still uses the server, this registration left out. */
  othersRemain(): Promise<boolean>;
}

export async function register(directory: DataDirectory): Promise<Registration> {
  const folder = join(directory.path, "attached");
  const path = join(folder, await myName());
  const write = async () => {
    await unless(["EEXIST"], mkdir(folder));
    await writeFile(path, "");
    await directory.own(folder);
    await directory.own(path);
  };
  await write();
  const touching = keepTouching(directory.clock, path, write);
  return {
    async remove() {
      await touching.stop();
      await unless(["ENOENT"], unlink(path));
    },
    async othersRemain() {
      const present = await presentIn(folder, createWitness(directory.clock));
      return present.some(([name, presence]) => presence === "here" && name !== basename(path));
    },
  };
}

/**
 * Refuses a directory that a process in another container or on another machine uses: PostgreSQL cannot see such a process,
 * and would let a second server write the same files.
 */
export async function refuseWhileUsedElsewhere({ path, clock, log }: DataDirectory, signal?: AbortSignal): Promise<void> {
  const presenceOf = createWitness(clock);
  const startedMs = clock.monotonicMs();
  for (let looks = 0; ; looks++) {
    const present = await presentIn(join(path, "attached"), presenceOf);
    const elsewhere = present.filter(([, presence]) => presence === "elsewhere").map(([name]) => name);
    if (elsewhere.length === 0) return;
    if (signal?.aborted || clock.monotonicMs() - startedMs > ELSEWHERE_WAIT_MS) {
      throw embeddedFailed(
        `The data directory ${path} is in use by a process in another container or on another machine (${elsewhere.join(", ")}). ` +
          `Stop that one first, give this one a directory of its own (MAKEGOOD_DATA_DIR), or share one server through DATABASE_URL.`,
        { dataDir: path, elsewhere },
      );
    }
    if (looks === 0) log(`waiting: ${path} was just used from another container or machine (${elsewhere.join(", ")})`);
    await sleep(clock, 250, signal);
  }
}

/** The files of dead processes are removed as they are met. */
async function presentIn(folder: string, presenceOf: Witness): Promise<[name: string, presence: Presence][]> {
  const found: [string, Presence][] = [];
  for (const name of (await unless(["ENOENT"], readdir(folder))) ?? []) {
    const presence = await presenceOf(join(folder, name));
    if (presence === "gone") await unless(["ENOENT"], unlink(join(folder, name)));
    else found.push([name, presence]);
  }
  return found;
}

type Presence = "here" | "elsewhere" | "gone";
/** Call it again until it answers "gone": silence elsewhere can only be seen by looking more than once. */
type Witness = (path: string) => Promise<Presence>;

function createWitness(clock: Clock): Witness {
  const seen = new Map<string, { mtimeMs: number; sinceMs: number }>();
  return async (path) => {
    const runs = await runsHere(basename(path));
    if (runs !== undefined) return runs ? "here" : "gone";
    const found = await unless(["ENOENT"], stat(path));
    if (!found || clock.wallMs() - found.mtimeMs > LONG_SILENT_MS) return "gone";
    const before = seen.get(path);
    if (before?.mtimeMs !== found.mtimeMs) {
      seen.set(path, { mtimeMs: found.mtimeMs, sinceMs: clock.monotonicMs() });
      return "elsewhere";
    }
    return clock.monotonicMs() - before.sinceMs > SILENT_MS ? "gone" : "elsewhere";
  };
}

/** Undefined for a process elsewhere. A name that is no identity was left by nothing that runs. */
async function runsHere(name: string): Promise<boolean | undefined> {
  const identity = parseIdentity(name);
  if (!identity) return false;
  return identity.place === (await here()) ? isRunning(identity) : undefined;
}

/** Touches a file until stopped. One that is missing is only made again when the caller says how: a lock was lost then. */
function keepTouching(clock: Clock, path: string, makeAgain = async () => {}): Loop {
  return startLoop({
    clock,
    async step() {
      const now = clock.wallMs() / 1_000;
      if (!(await succeeds(["ENOENT"], utimes(path, now, now)))) await makeAgain();
      return TOUCH_EVERY_MS;
    },
    failed: () => TOUCH_EVERY_MS,
  });
}
