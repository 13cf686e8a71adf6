/** A chunk of archived lines as a file: compressed, sealed where there is a key, and under its name only when it is whole and on the disk. */
import { mkdir, open, readFile, rename, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { errorText, MakegoodError } from "../message/errors.ts";
import type { Random } from "../platform/random.ts";
import { syncFolder } from "../platform/sync-folder.ts";
import type { Sealer } from "../store/ladder/format/seal.ts";

export interface ChunkFile {
  readonly directory: string;
  readonly file: string;
  readonly body: string;
  /** What a seal is bound to, so that one text cannot take the place of another. */
  readonly sealedAs: string;
}

/** Returns its path. */
export async function writeChunk({ directory, file, body, sealedAs }: ChunkFile, sealer: Sealer | null, random: Random) {
  const folder = resolve(directory);
  const path = join(folder, file);
  // Unfinished under a name that nobody else has: what has the right one is whole, whatever happened, also when two write it at once.
  const unfinished = `${path}.${Buffer.from(random.bytes(4)).toString("hex")}.part`;
  const opened = await mkdir(folder, { recursive: true })
    .then(() => open(unfinished, "w", 0o600))
    .catch((error: unknown) => {
      const text = `the archive cannot be written to ${folder}: ${String(error)}`;
      throw new MakegoodError("invalid_config", text, { path: folder }, error);
    });
  try {
    await opened.writeFile(gzipSync(sealer ? sealer.seal(body, sealedAs) : body));
    await opened.sync();
  } finally {
    await opened.close();
  }
  await rename(unfinished, path);
  await syncFolder(folder);
  return path;
}

/** `away`: nothing is wrong with the file, it cannot be read here. */
export interface Unread {
  readonly fault: string;
  readonly away?: boolean;
}

/** `seal`: null where it was written without one. */
export async function readChunk(
  path: string,
  seal: { readonly sealer: Sealer | null; readonly sealedAs: string } | null,
): Promise<string | Unread> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    const folder = await stat(dirname(path)).catch(() => null);
    return folder === null ? { fault: "its directory is not on this machine", away: true } : { fault: errorText(error) };
  }
  let text: string;
  try {
    text = gunzipSync(bytes).toString("utf8");
  } catch (error) {
    return { fault: `it cannot be unpacked (${errorText(error)})` };
  }
  if (seal === null) return text;
  if (seal.sealer === null) return { fault: "it is sealed: MAKEGOOD_SEAL_KEY opens it", away: true };
  const opened = seal.sealer.open(text, seal.sealedAs);
  return "fault" in opened ? opened : opened.text;
}
