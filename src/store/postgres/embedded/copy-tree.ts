/**
 * Copies the files of a data directory one after the other, each with its hash, and everything on the disk when it returns. What vanishes while
 * it is copied is left out: for a server at work its log says what that was.
 */
import { createHash } from "node:crypto";
import { chmod, mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../../../platform/sync-folder.ts";
import { unless } from "./failure.ts";

export interface CopiedFile {
  /** Below the folder, with `/`. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

const PIECE_BYTES = 1_048_576;

/** Every file and folder below, folders first; `skip` says what is left out, by its path below. */
export async function listTree(root: string, skip: (path: string) => boolean = () => false) {
  const found = { folders: [] as string[], files: [] as string[] };
  for (let at = -1; at < found.folders.length; at++) {
    const below = at < 0 ? "" : `${found.folders[at]}/`;
    for (const entry of (await unless(["ENOENT"], readdir(join(root, below), { withFileTypes: true }))) ?? []) {
      const path = `${below}${entry.name}`;
      if (skip(path)) continue;
      if (entry.isDirectory()) found.folders.push(path);
      else found.files.push(path);
    }
  }
  return found;
}

/** Null: it is not there any more. */
export async function copyFile(from: string, to: string, path: string): Promise<CopiedFile | null> {
  const source = await unless(["ENOENT"], open(join(from, path), "r"));
  if (!source) return null;
  try {
    const target = await open(join(to, path), "wx", 0o600);
    const sha = createHash("sha256");
    let bytes = 0;
    try {
      const piece = Buffer.alloc(PIECE_BYTES);
      for (;;) {
        const { bytesRead } = await source.read(piece, 0, PIECE_BYTES, bytes);
        if (bytesRead === 0) break;
        const read = piece.subarray(0, bytesRead);
        sha.update(read);
        await target.writeFile(read);
        bytes += bytesRead;
      }
      await target.sync();
    } finally {
      await target.close();
    }
    return { path, bytes, sha256: sha.digest("hex") };
  } finally {
    await source.close();
  }
}

export async function hashFile(path: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const sha = createHash("sha256");
  let bytes = 0;
  const file = await open(path, "r");
  for await (const piece of file.createReadStream({ highWaterMark: PIECE_BYTES }) as AsyncIterable<Buffer>) {
    sha.update(piece);
    bytes += piece.length;
  }
  return { bytes, sha256: sha.digest("hex") };
}

export async function makeFolders(root: string, folders: readonly string[]): Promise<void> {
  for (const path of folders) {
    await mkdir(join(root, path), { recursive: true });
    await chmod(join(root, path), 0o700);
  }
}

/** The names in them, the innermost first. */
export async function syncFolders(root: string, folders: readonly string[]): Promise<void> {
  for (const path of [...folders].reverse()) await syncFolder(join(root, path));
  await syncFolder(root);
}
