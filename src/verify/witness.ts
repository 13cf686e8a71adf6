/**
 * A witness outside of the store: a file to which each pass appends where the store stands. A store that was restored to an earlier time, or
 * lost its last transactions, is behind its witness or remembers another past. Several stores may share a file; each reads its own lines.
 */
import { open } from "node:fs/promises";
import { errorText } from "../message/errors.ts";
import type { Beside, Conservation, Found, Position } from "../store/conservation.ts";

export interface Witness {
  /** Holds the store against what was written last. */
  look(conservation: Conservation): Promise<Beside>;
  /** Writes where it stands; an error is what `look` says next. */
  write(position: Position): Promise<void>;
}

/** Lines are short: the last ones of some stores are in it. */
const TAIL_BYTES = 262_144;

async function lastLines(path: string): Promise<string[]> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (file === null) return [];
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    const lines = buffer.subarray(0, bytesRead).toString("utf8").split("\n");
    return from === 0 ? lines : lines.slice(1);
  } finally {
    await file.close();
  }
}

/** A line that a crash cut off is not one; the ones before it count. */
function read(line: string): Position | null {
  try {
    const value = JSON.parse(line) as Partial<Position>;
    return typeof value.installation === "string" && typeof value.pass === "number" ? (value as Position) : null;
  } catch {
    return null;
  }
}

const SAME = ["accepted", "acceptedHash", "seals", "head"] as const;

export function fileWitness(path: string): Witness {
  let failed: string | null = null;
  return {
    async look(conservation) {
      try {
        const now = await conservation.position();
        if (now === null) return { found: [], unknown: null };
        const said = (await lastLines(path)).map(read).filter((one) => one?.installation === now.installation);
        const last = said.at(-1);
        if (!last) return { found: [], unknown: failed };
        return { found: await compared(conservation, now, last, path), unknown: failed };
      } catch (error) {
        return { found: [], unknown: `the witness ${path} cannot be read: ${errorText(error)}` };
      }
    },
    async write(position) {
      try {
        const file = await open(path, "a", 0o640);
        try {
          await file.appendFile(`${JSON.stringify(position)}\n`);
          await file.datasync();
        } finally {
          await file.close();
        }
        failed = null;
      } catch (error) {
        failed = `the witness ${path} cannot be written: ${errorText(error)}`;
      }
    },
  };
}

async function compared(conservation: Conservation, now: Position, last: Position, path: string): Promise<Found[]> {
  const found = (kind: string, count: number, detail: string): Found[] => [{ kind, count: Math.max(1, count), ids: [], detail }];
  const missing = last.accepted - now.accepted;
  if (now.pass < last.pass || missing > 0) {
    const words = `${path} saw pass ${last.pass} at ${last.at} with ${last.accepted} accepted; the store is at pass ${now.pass} with ${now.accepted}`;
    return found("behind_witness", missing, words);
  }
  const then = await conservation.positionAt(last.pass);
  if (!then || SAME.every((name) => then[name] === last[name])) return [];
  return found(
    "witness_differs",
    Math.abs(last.accepted - then.accepted),
    `of pass ${last.pass} ${path} says ${last.accepted} accepted at ${last.at}, and the store ${then.accepted} at ${then.at}`,
  );
}
