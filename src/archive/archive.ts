/**
 * The archive: records that left their tables, in chunks of at most a thousand, each a JSON object a line. A chunk is written with the
 * deletion, in the database; from there its text may move to a file or to an HTTP receiver. Listed, read again and verified here.
 */
import { createHash } from "node:crypto";
import { errorText, MakegoodError } from "../message/errors.ts";
import type { Random } from "../platform/random.ts";
import type { Home, Row } from "../store/home.ts";
import { createSealer, type Sealer } from "../store/ladder/format/seal.ts";
import { HERE, NOWHERE } from "../store/shared/archive-sql.ts";
import { readChunk } from "./chunk-file.ts";

export interface Chunk {
  readonly id: number;
  readonly class: string;
  readonly at: string;
  readonly rows: number;
  readonly bytes: number;
  readonly firstId: string;
  readonly lastId: string;
  readonly sha256: string;
  /** `table`, `nowhere` (only the fact was kept), or where its text went: `file:…`, `https://…`. */
  readonly place: string;
  readonly sealed: boolean;
}

export interface ArchiveFilter {
  readonly class?: string | undefined;
  readonly limit: number;
  /** The id of the last chunk that was seen. */
  readonly after?: number | undefined;
}

export interface Verified {
  readonly chunks: number;
  readonly rows: number;
  /** Chunks whose text was read and is as it was written. */
  readonly whole: number;
  /** Chunks whose text is at a receiver, or was not to be kept: only their place in the chain is proven. */
  readonly unread: number;
  readonly faults: readonly { readonly id: number; readonly class: string; readonly fault: string }[];
}

export interface Archive {
  /** Oldest first. */
  list(filter: ArchiveFilter): Promise<Chunk[]>;
  /** The lines of a chunk, checked. Throws `archive_not_found`, or `invariant_violated` where it is not what was written. */
  read(id: number): Promise<string>;
  verify(): Promise<Verified>;
  /** The chunks after this one, as `verify` looks at them; with a bound only so many. */
  look(from: number, bound?: Bound): Promise<Looked>;
}

export interface Bound {
  readonly bytesMax: number;
  readonly chunksMax: number;
}

export interface Fault {
  readonly id: number;
  readonly class: string;
  readonly rows: number;
  readonly fault: string;
  /** It cannot be judged here: its directory, or the key that opens it, is somewhere else. */
  readonly away: boolean;
}

export interface Looked extends Omit<Verified, "faults"> {
  readonly faults: readonly Fault[];
  /** The last chunk that was looked at, and whether there is none after it. */
  readonly last: number;
  readonly ended: boolean;
}

const COLUMNS = `id::text, class, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), rows::text, bytes::text, first_id, last_id, sha256,
  place, sealed::text, chain`;
const PAGE = 100;
const FAULTS_MAX = 1_000;

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

const chunkOf = (row: Row): Chunk => {
  const [id, name, at, rows, bytes, firstId, lastId, sum, place, sealed] = row as string[];
  return {
    ...{ id: Number(id), class: name as string, at: at as string, rows: Number(rows), bytes: Number(bytes) },
    ...{
      firstId: firstId as string,
      lastId: lastId as string,
      sha256: sum as string,
      place: place as string,
      sealed: sealed === "true",
    },
  };
};

export interface ArchiveParts {
  readonly home: Home;
  readonly random: Random;
  readonly sealKey?: string | undefined;
}

export function createArchive({ home, random, sealKey }: ArchiveParts): Archive {
  const { s } = home;
  const sealer = sealKey === undefined ? null : createSealer(sealKey, random);
  const read = home.read("read the archive");

  /** Null: it is not here to be read. Throws where it should be and is not, or is not what was written. */
  async function textOf(chunk: Chunk): Promise<string | null> {
    const { id, place, rows } = chunk;
    if (place === NOWHERE || /^https?:/.test(place)) return null;
    const text =
      place === HERE
        ? ((await read(`select body from ${s}.archive_chunk where id = $1::bigint`, [id]))[0]?.[0] ?? null)
        : await fromFile(chunk, sealer);
    const broken = (fault: string) =>
      new MakegoodError("invariant_violated", `chunk ${id} of the archive ${fault}`, { id, place });
    if (text === null) throw broken("has no text");
    if (sha256(text) !== chunk.sha256) throw broken("is not what was written: its checksum differs");
    if (text.split("\n").length - 1 !== rows) throw broken("has another number of lines than it had records");
    return text;
  }

  /** The chain of the chunk before this one, of its class. */
  async function chainBefore(id: number, name: string): Promise<string> {
    const [row] = await read(
      `select chain from ${s}.archive_chunk where class = $2 and id < $1::bigint order by archive_chunk.id desc limit 1`,
      [id, name],
    );
    return row?.[0] ?? "";
  }

  async function look(from: number, bound?: Bound): Promise<Looked> {
    const chains = new Map<string, string>();
    const faults: Fault[] = [];
    const sum = { chunks: 0, rows: 0, whole: 0, unread: 0, last: from, ended: false };
    let bytes = 0;
    for (;;) {
      const page = await read(
        `select ${COLUMNS} from ${s}.archive_chunk where id > $1::bigint order by archive_chunk.id limit ${PAGE}`,
        [sum.last],
      );
      for (const row of page) {
        if (bound && (bytes >= bound.bytesMax || sum.chunks >= bound.chunksMax)) return { ...sum, faults };
        const chunk = chunkOf(row);
        const { id, class: name, rows } = chunk;
        const say = (fault: string, away = false) =>
          faults.length < FAULTS_MAX && faults.push({ id, class: name, rows, fault, away });
        const chain = sha256((chains.get(name) ?? (await chainBefore(id, name))) + chunk.sha256);
        if (chain !== row[10]) say(`chunk ${id}: a chunk before it is missing or was changed: its chain does not continue`);
        chains.set(name, row[10] as string);
        sum.chunks++;
        sum.rows += rows;
        sum.last = id;
        bytes += chunk.bytes;
        const text = await textOf(chunk).catch((error: unknown) => void say(errorText(error), isAway(error)));
        if (text === null) sum.unread++;
        else if (text !== undefined) sum.whole++;
      }
      if (page.length < PAGE) return { ...sum, ended: true, faults };
    }
  }

  async function verify(): Promise<Verified> {
    const { chunks, rows, whole, unread, faults } = await look(0);
    return { chunks, rows, whole, unread, faults: faults.map(({ id, class: name, fault }) => ({ id, class: name, fault })) };
  }

  return {
    async list({ class: name, limit, after = 0 }) {
      const text = `select ${COLUMNS} from ${s}.archive_chunk where id > $1::bigint and ($2::text is null or class = $2) order by archive_chunk.id limit $3::int`;
      return (await read(text, [after, name ?? null, limit])).map(chunkOf);
    },
    async read(id) {
      const [row] = await read(`select ${COLUMNS} from ${s}.archive_chunk where id = $1::bigint`, [id]);
      if (!row) throw new MakegoodError("archive_not_found", `the archive has no chunk ${id}`, { id });
      const chunk = chunkOf(row);
      const text = await textOf(chunk);
      if (text !== null) return text;
      const why =
        chunk.place === NOWHERE ? "only the fact was kept that its records went" : `its text was sent to ${chunk.place}`;
      throw new MakegoodError("archive_not_found", `the text of chunk ${id} is not here: ${why}`, { id, place: chunk.place });
    },
    look,
    verify,
  };
}

const isAway = (error: unknown): boolean => error instanceof MakegoodError && error.code === "archive_not_found";

async function fromFile({ id, place, sealed }: Chunk, sealer: Sealer | null): Promise<string> {
  const path = place.replace(/^file:/, "");
  const found = await readChunk(path, sealed ? { sealer, sealedAs: `archive/${id}` } : null);
  if (typeof found === "string") return found;
  const code = found.away ? "archive_not_found" : "invariant_violated";
  throw new MakegoodError(code, `chunk ${id} of the archive, ${path}: ${found.fault}`, { id, path });
}
