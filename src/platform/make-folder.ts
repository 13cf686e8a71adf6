/**
 * Folders whose names survive a power cut: a name is on the disk only when the folder that has it was synced, and a file that was synced is of no use
 * without its name.
 */
import { mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { syncFolder } from "./sync-folder.ts";

/** Makes a folder and those above it that are missing, and returns the first that it made; undefined: it was there. */
export async function makeFolder(path: string, mode?: number): Promise<string | undefined> {
  const wanted = resolve(path);
  const first = await mkdir(wanted, { recursive: true, ...(mode === undefined ? {} : { mode }) });
  if (first === undefined) return undefined;
  const top = dirname(first);
  for (let folder = dirname(wanted); folder.length >= top.length; folder = dirname(folder)) {
    await syncFolder(folder).catch((error: NodeJS.ErrnoException) => {
      // One that we may enter but not read is another's to sync.
      if (error.code !== "EACCES" && error.code !== "EPERM") throw error;
    });
    if (folder === top) break;
  }
  return first;
}
