/**
 * Moves the text of archived chunks out of the database, to a directory or to an HTTP receiver: written first, forgotten here after. A run
 * that was killed in between writes the same file again, or sends the same chunk under the same key again.
 */
import type { JobTurn, MaintenanceJob, Ran } from "../platform/job.ts";
import type { Random } from "../platform/random.ts";
import type { Home } from "../store/home.ts";
import { createSealer, type Sealer } from "../store/ladder/format/seal.ts";
import { writeChunk } from "./chunk-file.ts";

/** Where archives go. `send`: to an HTTP receiver; it throws unless that has taken them. */
export type ArchiveTo =
  | { readonly kind: "table" }
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "receiver"; readonly url: string; readonly send: SendChunk };

export type SendChunk = (chunk: {
  readonly key: string;
  readonly body: string;
  readonly sha256: string;
  readonly class: string;
}) => Promise<void>;

export interface ShipOptions {
  readonly home: Home;
  readonly to: Exclude<ArchiveTo, { kind: "table" }>;
  readonly random: Random;
  readonly sealKey?: string | undefined;
}

const EVERY_MS = 60_000;
const BATCH = 10;
const ROUNDS_MAX = 100;

interface Waiting {
  readonly id: string;
  readonly class: string;
  readonly sha256: string;
  readonly body: string;
}

export function shipArchive({ home, to, random, sealKey }: ShipOptions): MaintenanceJob {
  const { s } = home;
  const sealer = sealKey === undefined ? null : createSealer(sealKey, random);
  const waiting = `from ${s}.archive_chunk where body is not null`;

  async function ship(chunk: Waiting, turn: JobTurn): Promise<void> {
    const place = to.kind === "receiver" ? await toReceiver(chunk, to) : await toFile(chunk, to.path, sealer, random);
    // Under the fence: after it nothing of the text is left here.
    const text = `update ${s}.archive_chunk set body = null, place = $2, sealed = $3::boolean where id = $1::bigint and body is not null`;
    const sealed = to.kind === "directory" && sealer !== null;
    await home.transaction("ship the archive", ({ run }) => run(text, [chunk.id, place, sealed]), turn.fence);
  }

  return {
    name: "ship-archive",
    about: "moves archived records out of the database, to where MAKEGOOD_ARCHIVE says",
    rehearses: true,
    everyMs: EVERY_MS,
    where: "leader",
    async run(signal, turn): Promise<Ran> {
      const read = home.read("read the archive");
      if (turn.dryRun) return { counts: { would_ship: Number((await read(`select count(*)::text ${waiting}`))[0]?.[0]) } };
      let shipped = 0;
      for (let round = 0; round < ROUNDS_MAX && !signal.aborted; round++) {
        const rows = await read(
          `select id::text, class, sha256, body ${waiting} order by archive_chunk.id limit ${turn.batchSize ?? BATCH}`,
        );
        for (const row of rows) {
          if (signal.aborted) break;
          const [id, name, sum, body] = row as readonly [string, string, string, string];
          await ship({ id, class: name, sha256: sum, body }, turn);
          shipped++;
        }
        if (rows.length < (turn.batchSize ?? BATCH)) return { counts: { shipped } };
      }
      return { counts: { shipped }, more: !signal.aborted };
    },
  };
}

async function toReceiver(chunk: Waiting, { url, send }: { url: string; send: SendChunk }): Promise<string> {
  await send({ key: `archive/${chunk.id}/${chunk.sha256}`, body: chunk.body, sha256: chunk.sha256, class: chunk.class });
  return new URL(url).origin + new URL(url).pathname;
}

async function toFile(
  { id, class: name, sha256, body }: Waiting,
  directory: string,
  sealer: Sealer | null,
  random: Random,
): Promise<string> {
  const file = `${name}-${id.padStart(12, "0")}-${sha256.slice(0, 16)}.ndjson.gz`;
  return `file:${await writeChunk({ directory, file, body, sealedAs: `archive/${id}` }, sealer, random)}`;
}
