/** Makes the names in a folder durable. */
import { open } from "node:fs/promises";

/** A name in a folder, and a rename, is durable only when the folder is. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
