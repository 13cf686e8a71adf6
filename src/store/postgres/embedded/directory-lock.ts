/**
 * The lock of a data directory: whoever makes, starts or stops its server holds it. The lock is a folder with one file named
 * after its holder. Taking it is a rename onto an absent or empty folder, which the system does atomically and refuses while
 * the folder is not empty; a dead holder's file is removed by its own name, so a live holder is never removed by mistake.
 */
import { mkdir, readdir, rename, rm, rmdir, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, sleep } from "../../../platform/clock.ts";
import { identityName, isRunning, myIdentity, parseIdentity } from "../../../platform/process-identity.ts";
import { embeddedFailed, unless } from "./failure.ts";
import { createWitness, keepTouching } from "./presence.ts";

export interface LockOptions {
  readonly clock: Clock;
  readonly log: (message: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Gives a file that root made to the owner of the directory, so that the owner can remove it later. */
  readonly own: (path: string) => Promise<void>;
}

const POLL_MS = 20;
/** Longer than any start should take, crash recovery included; then somebody has to look. */
const WAIT_MS_MAX = 900_000;
const LOG_EVERY_MS = 10_000;
const NOT_FREE = ["ENOTEMPTY", "EEXIST"];
let counter = 0;

export async function withLock<T>(directory: string, options: LockOptions, run: () => Promise<T>): Promise<T> {
  const held = await takeLock(directory, options);
  const touching = keepTouching(options.clock, held);
  try {
    return await run();
  } finally {
    await touching.stop();
    // ENOENT: the whole directory was removed under us; then there is nothing to give back.
    await unless(["ENOENT"], unlink(held));
    await removeEmpty(dirname(held));
  }
}

async function takeLock(directory: string, { clock, log, signal, own }: LockOptions): Promise<string> {
  const lock = join(directory, "lock");
  const name = identityName(await myIdentity());
  const prepared = join(directory, `lock.new-${name}-${counter++}`);
  await mkdir(prepared);
  try {
    await writeFile(join(prepared, name), "");
    await own(prepared);
    await own(join(prepared, name));
    const witness = createWitness(clock);
    const startedMs = clock.monotonicMs();
    let loggedMs = startedMs;
    for (;;) {
      if (
        (await unless(
          NOT_FREE,
          rename(prepared, lock).then(() => true),
        )) === true
      )
        break;
      const holder = (await unless(["ENOENT"], readdir(lock)))?.[0];
      if (holder === undefined) await removeEmpty(lock);
      if (holder !== undefined && (await witness.look(lock, holder)) === "gone") {
        log(`took over the lock of a process that is gone (${holder})`);
        await unless(["ENOENT"], unlink(join(lock, holder)));
        continue;
      }
      const nowMs = clock.monotonicMs();
      if (signal?.aborted) throw embeddedFailed(`Stopped while waiting for ${lock}.`, { lock, holder });
      if (nowMs - startedMs > WAIT_MS_MAX) {
        throw embeddedFailed(
          `Process ${holder} has held ${lock} for ${WAIT_MS_MAX / 60_000} minutes. See what it does, or end it, and start again.`,
          { lock, holder },
        );
      }
      if (nowMs - loggedMs > LOG_EVERY_MS) {
        loggedMs = nowMs;
        log(`waiting for process ${holder}, which holds ${lock}`);
      }
      await sleep(clock, POLL_MS, signal);
    }
  } catch (error) {
    await rm(prepared, { recursive: true, force: true });
    throw error;
  }
  await removePreparedByTheDead(directory);
  return join(lock, name);
}

/** Not every file system renames onto an empty folder. Safe: if somebody took it meanwhile, it is not empty and stays. */
async function removeEmpty(lock: string): Promise<void> {
  await unless(["ENOENT", ...NOT_FREE], rmdir(lock));
}

async function removePreparedByTheDead(directory: string): Promise<void> {
  for (const entry of await readdir(directory)) {
    if (!entry.startsWith("lock.new-")) continue;
    const identity = parseIdentity(entry.slice("lock.new-".length));
    // One elsewhere stays: it may be live, and an empty folder more costs nothing.
    const gone = identity !== undefined && identity.place === (await myIdentity()).place && !(await isRunning(identity));
    if (gone) await rm(join(directory, entry), { recursive: true, force: true });
  }
}
