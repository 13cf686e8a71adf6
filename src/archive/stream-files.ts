/**
 * Entries of a Redis stream in files, where no store stands beside that Redis: chunks in the order of the stream, each named by its first and
 * last entry and by its checksum. So the names say what is archived: nothing is written twice, and what is deleted was written before.
 */
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { MakegoodError } from "../message/errors.ts";
import type { Random } from "../platform/random.ts";
import { createSealer } from "../store/ladder/format/seal.ts";
import { sha256 } from "./archive.ts";
import { readChunk, writeChunk } from "./chunk-file.ts";

export interface StreamFilesOptions {
  readonly directory: string;
  /** As the configuration calls it: a part of the names. */
  readonly name: string;
  readonly sealKey?: string | undefined;
  readonly random: Random;
}

export interface StreamFiles {
  /** Those after the last one that is in a file. */
  fresh<T extends { readonly id: string }>(entries: readonly T[]): Promise<T[]>;
  /** In the order of the stream, after the last one; on the disk when this returns. */
  write(entries: readonly { readonly id: string }[]): Promise<string>;
  /** A JSON object a line, checked. */
  read(file: string): Promise<string>;
}

const ID = "[0-9]+-[0-9]+";

function isAfter(id: string, other: string): boolean {
  const [a, b] = [id, other].map((one) => one.split("-").map(BigInt)) as [[bigint, bigint], [bigint, bigint]];
  return a[0] === b[0] ? a[1] > b[1] : a[0] > b[0];
}

export function createStreamFiles({ directory, name, sealKey, random }: StreamFilesOptions): StreamFiles {
  const sealer = sealKey === undefined ? null : createSealer(sealKey, random);
  const form = new RegExp(`^stream-${name}-(${ID})_(${ID})-([0-9a-f]{16})(-sealed)?\\.ndjson\\.gz$`);
  return {
    async fresh(entries) {
      const names = await readdir(resolve(directory)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return [];
        throw error;
      });
      const ids = names.flatMap((file) => form.exec(file)?.[2] ?? []);
      const last = ids.reduce((sofar, id) => (isAfter(id, sofar) ? id : sofar), "0-0");
      return entries.filter(({ id }) => isAfter(id, last));
    },
    write(entries) {
      const body = entries.map((one) => `${JSON.stringify(one)}\n`).join("");
      const [first, last] = [entries[0]?.id, entries.at(-1)?.id];
      const sealedAs = `stream/${name}/${first}`;
      const file = `stream-${name}-${first}_${last}-${sha256(body).slice(0, 16)}${sealer ? "-sealed" : ""}.ndjson.gz`;
      return writeChunk({ directory, file, body, sealedAs }, sealer, random);
    },
    async read(file) {
      const [, first, , sum, sealed] = form.exec(file) ?? [];
      const fail = (why: string) => new MakegoodError("invariant_violated", `${file}: ${why}`, { file });
      if (sum === undefined) throw fail("this is no file of archived entries of this stream");
      const seal = sealed === undefined ? null : { sealer, sealedAs: `stream/${name}/${first}` };
      const text = await readChunk(join(resolve(directory), file), seal);
      if (typeof text !== "string") throw fail(text.fault);
      if (sha256(text).slice(0, 16) !== sum) throw fail("it is not what was written: its checksum differs");
      return text;
    },
  };
}
