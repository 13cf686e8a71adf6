/**
 * The note that messages with an ordering key may lie in the secondary store, for all processes of a journal's directory. It survives the process that
 * wrote it, not more; a process that finds nothing in that store removes it.
 */
import { stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

const noteOf = (directory: string): string => join(directory, "ordered-in-secondary");

export async function noteOrdered(directory: string, holds: boolean): Promise<void> {
  const path = noteOf(directory);
  await (holds ? writeFile(path, "", { mode: 0o600 }) : unlink(path).catch(() => {}));
}

export async function notedOrdered(directory: string): Promise<boolean> {
  return (await stat(noteOf(directory)).catch(() => null)) !== null;
}
