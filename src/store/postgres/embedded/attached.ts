/**
 * Which processes use the server of a data directory: one file each in `attached/`. The last one to leave stops the server,
 * so the list is read and changed only by the holder of the lock, and the files of dead processes are removed as they are met.
 */
import { mkdir, readdir, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, sleep } from "../../../platform/clock.ts";
import { identityName, myIdentity } from "../../../platform/process-identity.ts";
import type { DataDirectory } from "./data-directory.ts";
import { embeddedFailed, unless } from "./failure.ts";
import { createWitness, type Presence, touch, type Witness } from "./presence.ts";

export interface Registration {
  /** Says that this process is still here; makes the file again if somebody removed it. */
  touch(): Promise<void>;
  remove(): Promise<void>;
  /** Live processes of this place that use the server, this one left out. */
  others(): Promise<readonly string[]>;
}

/** A rolling replacement of containers overlaps for a while; longer than this is a mistake. */
const ELSEWHERE_WAIT_MS = 60_000;
let counter = 0;

export async function register(directory: DataDirectory, clock: Clock): Promise<Registration> {
  const folder = join(directory.path, "attached");
  // Several servers of one process are several users: each has a file of its own.
  const name = `${identityName(await myIdentity())}-${counter++}`;
  const path = join(folder, name);
  const write = async () => {
    await mkdir(folder, { recursive: true });
    await writeFile(path, "");
    await directory.own(folder);
    await directory.own(path);
  };
  await write();
  return {
    async touch() {
      if (
        (await unless(
          ["ENOENT"],
          touch(clock, path).then(() => true),
        )) !== true
      )
        await write();
    },
    async remove() {
      await unless(["ENOENT"], unlink(path));
    },
    async others() {
      const present = await look(folder, createWitness(clock));
      return present.filter(([other, presence]) => presence === "here" && other !== name).map(([other]) => other);
    },
  };
}

/**
 * Refuses a directory that a process in another container or on another machine uses: PostgreSQL cannot see such a process,
 * and would let a second server write the same files.
 */
export async function refuseWhileUsedElsewhere(
  directory: DataDirectory,
  clock: Clock,
  log: (message: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  const folder = join(directory.path, "attached");
  const witness = createWitness(clock);
  const startedMs = clock.monotonicMs();
  let told = false;
  for (;;) {
    const elsewhere = (await look(folder, witness)).filter(([, presence]) => presence === "elsewhere").map(([name]) => name);
    if (elsewhere.length === 0) return;
    if (signal?.aborted || clock.monotonicMs() - startedMs > ELSEWHERE_WAIT_MS) {
      throw embeddedFailed(
        `The data directory ${directory.path} is in use by a process in another container or on another machine (${elsewhere.join(", ")}). ` +
          `Stop that one first, give this one a directory of its own (MAKEGOOD_DATA_DIR), or share one server through DATABASE_URL.`,
        { dataDir: directory.path, elsewhere },
      );
    }
    if (!told) log(`waiting: ${directory.path} was just used from another container or machine (${elsewhere.join(", ")})`);
    told = true;
    await sleep(clock, 250, signal);
  }
}

async function look(folder: string, witness: Witness): Promise<[string, Presence][]> {
  const found: [string, Presence][] = [];
  for (const name of (await unless(["ENOENT"], readdir(folder))) ?? []) {
    const presence = await witness.look(folder, name);
    if (presence === "gone") await unless(["ENOENT"], unlink(join(folder, name)));
    else found.push([name, presence]);
  }
  return found;
}
