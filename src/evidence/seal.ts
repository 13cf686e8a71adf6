/**
 * Sealing: numbers what was committed, makes a block of what has a number and no block, and writes its note outside. Each block is one
 * transaction under the state's row, so two that seal at once make one chain; what a crash left unwritten outside is written by the next.
 */
import { errorText } from "../message/errors.ts";
import type { Events } from "../observe/events.ts";
import type { Fence, MaintenanceJob, Ran } from "../platform/job.ts";
import type { Home, Run } from "../store/home.ts";
import { EVIDENCE_SOURCES, numberRows } from "../store/shared/evidence-rows.ts";
import { BEGINNING, blockText, hashOf } from "./block.ts";
import { rootOf } from "./merkle.ts";
import { type NoteKey, signNote } from "./notes.ts";
import type { Copied, Outside } from "./outside.ts";

export interface SealParts {
  readonly home: Home;
  readonly keys: readonly NoteKey[];
  /** Null: nothing is written outside, and every block says so. */
  readonly outside: Outside | null;
  readonly events: Events;
}

const EVERY_MS = 60_000;
/** Rows of a block at most: what one transaction reads and holds the numbers for. */
export const BLOCK_ROWS_MAX = 5_000;
const BLOCKS_A_RUN = 20;
const COPIES_A_RUN = 500;

/** By the database's clock, to the microsecond. */
export const NOW_SQL = `to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

export const bytes = (hex: string | null | undefined): Buffer => Buffer.from(hex ?? "", "hex");

export const installationOf = async (run: Run, s: string): Promise<string> =>
  (await run(`select id::text from ${s}.installation`))[0]?.[0] ?? "";

interface Sealed {
  readonly height: string;
  readonly rows: number;
}

/** Null: there was nothing new. */
export function sealBlock({ home, keys }: Pick<SealParts, "home" | "keys">, under: Fence | null = null): Promise<Sealed | null> {
  return home.transaction("seal", ({ run }) => sealIn(run, home.s, keys), under);
}

/** Everything that is committed by now, in the caller's transaction. */
export async function sealAllIn(run: Run, s: string, keys: readonly NoteKey[]): Promise<void> {
  while ((await sealIn(run, s, keys)) !== null);
}

async function sealIn(run: Run, s: string, keys: readonly NoteKey[]): Promise<Sealed | null> {
  await numberRows(run, s, BLOCK_ROWS_MAX);
  const [head] = await run(
    `select height::text, encode(hash, 'hex'), last_pos::text from ${s}.evidence_block b order by b.height desc limit 1`,
  );
  const numbers = EVIDENCE_SOURCES.map(({ number }) => number).join(", ");
  const leaves = await run(
    `select pos::text, encode(leaf, 'hex') from ${s}.evidence_leaf l where source in (${numbers}) and pos > $1::bigint and pos <= $1::bigint + $2
    order by l.pos`,
    [head?.[2] ?? "0", BLOCK_ROWS_MAX],
  );
  const [firstPos, lastPos] = [leaves[0]?.[0], leaves.at(-1)?.[0]];
  if (!firstPos || !lastPos) return null;
  const [now] = await run(`select ${NOW_SQL}`);
  const block = {
    height: String(BigInt(head?.[0] ?? "0") + 1n),
    previous: head ? bytes(head[1]) : BEGINNING,
    ...{ firstPos, lastPos },
    root: rootOf(leaves.map(([, leaf]) => bytes(leaf))),
    sealedAt: now?.[0] as string,
  };
  const text = blockText(await installationOf(run, s), block);
  const { height, previous, root, sealedAt } = block;
  const hashes = [previous, root, hashOf(text)].map((one) => one.toString("hex"));
  await run(
    `insert into ${s}.evidence_block (height, first_pos, last_pos, sealed_at, note, previous, root, hash)
    values ($1, $2, $3, $4::timestamptz, $5, decode($6, 'hex'), decode($7, 'hex'), decode($8, 'hex'))`,
    [height, firstPos, lastPos, sealedAt, signNote(text, keys), ...hashes],
  );
  return { height, rows: leaves.length };
}

/** Blocks have no gaps; a departure may be committed after one that has a higher number. */
const notAnchored = (s: string) => `select kind, number::text, note from (
    select 'block' as kind, height as number, note from ${s}.evidence_block
      where height > coalesce((select max(number) from ${s}.evidence_anchor where kind = 'block'), 0)
    union all select 'departure', d.id, d.note from ${s}.evidence_departure d
      where not exists (select from ${s}.evidence_anchor a where a.kind = 'departure' and a.number = d.id)) n
  order by n.kind, n.number limit ${COPIES_A_RUN}`;

/** Written outside first, then noted: a crash between them writes it twice. Returns how many. */
export async function anchor(
  { home, outside }: Pick<SealParts, "home" | "outside">,
  under: Fence | null = null,
): Promise<number> {
  if (outside === null) return 0;
  const { s } = home;
  const waiting = await home.read("read evidence")(notAnchored(s));
  for (const [kind, number, note] of waiting) {
    await outside.write({ kind, number, note } as Copied);
    const text = `insert into ${s}.evidence_anchor (kind, number, place) values ($1, $2, $3) on conflict do nothing`;
    await home.transaction("anchor", ({ run }) => run(text, [kind, number, outside.place]), under);
  }
  return waiting.length;
}

export function sealJob(parts: SealParts): MaintenanceJob {
  return {
    name: "seal-evidence",
    about: "seals new rows of audit and provenance into blocks, and copies their notes outside",
    everyMs: EVERY_MS,
    where: "leader",
    async run(signal, { fence }): Promise<Ran> {
      const sealed: Sealed[] = [];
      let copied: number | null = null;
      try {
        while (sealed.length < BLOCKS_A_RUN && !signal.aborted) {
          const block = await sealBlock(parts, fence);
          if (block === null) break;
          sealed.push(block);
        }
      } finally {
        copied = await anchor(parts, fence).catch((error: unknown) => untold(parts, error));
        const anchored = copied !== null && parts.outside !== null;
        for (const { height, rows } of sealed) parts.events.emit({ type: "evidence", block: height, rows, anchored });
      }
      const rows = sealed.reduce((sum, one) => sum + one.rows, 0);
      return { counts: { blocks: sealed.length, rows, copied: copied ?? 0 }, more: sealed.length === BLOCKS_A_RUN };
    },
  };
}

/** The blocks stand; what is not outside yet is tried again by the next run. */
function untold({ events, outside }: SealParts, error: unknown): null {
  events.emit({ type: "store_error", during: `copy evidence to ${outside?.place}`, error: errorText(error), consecutive: 1 });
  return null;
}
