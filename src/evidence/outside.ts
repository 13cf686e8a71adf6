/**
 * The copy outside of the database: without it a chain that was cut short or taken away as a whole looks like one that is younger. Lines are
 * only ever added; the same one twice does no harm, so a copy that was interrupted is made again.
 */
import { createReadStream } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { readObject } from "../message/json.ts";

/** A note that was written outside: of a block by its height, of a departure by its number. */
export interface Copied {
  readonly kind: "block" | "departure";
  readonly number: string;
  readonly note: string;
}

export interface Outside {
  /** Where to, for people: a path, `log` or an address. */
  readonly place: string;
  write(copied: Copied): Promise<void>;
  /** Null where what was written cannot be read again from here. */
  readonly read: (() => AsyncIterable<Copied>) | null;
}

export function fileCopy(path: string): Outside {
  return {
    place: path,
    async write(copied) {
      await mkdir(dirname(path), { recursive: true });
      const file = await open(path, "a", 0o640);
      try {
        await file.appendFile(`${JSON.stringify(copied)}\n`);
        await file.datasync();
      } finally {
        await file.close();
      }
    },
    read: () => readCopies(path),
  };
}

/** A copy that nobody has written yet is empty. A line that was cut by a crash is skipped: its note was written again. */
export async function* readCopies(path: string): AsyncIterable<Copied> {
  const input = createReadStream(path, "utf8");
  try {
    for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      const { kind, number, note } = readObject(text) ?? {};
      if ((kind === "block" || kind === "departure") && typeof number === "string" && typeof note === "string")
        yield { kind, number, note };
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** `say`: a line of the log, or a request that must be answered well. */
export const toldCopy = (place: string, say: (copied: Copied) => void | Promise<void>): Outside => ({
  place,
  write: async (copied) => say(copied),
  read: null,
});
