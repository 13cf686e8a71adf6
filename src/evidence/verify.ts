/**
 * Verification: every block is made again from its leaves, every leaf from its row, and all of it compared with the notes, the keys that are
 * trusted and the copy outside. It goes in parts, each of a bounded size, so that a chain of years is verified without holding anything up.
 */

import { once } from "../platform/once.ts";
import type { Home, Row, Run } from "../store/home.ts";
import { EVIDENCE_SOURCES, type EvidenceSource, joinSql, leafSql } from "../store/shared/evidence-rows.ts";
import { BEGINNING, type Block, blockText, hashOf, readBlockText } from "./block.ts";
import { createDepartures, type Departures } from "./check-departures.ts";
import { rootOf } from "./merkle.ts";
import { type NoteKey, readNote } from "./notes.ts";
import { type Origins, originsOf } from "./origins.ts";
import type { Copied, Outside } from "./outside.ts";
import { addRange, emptyReport, find, type Range, type Report } from "./report.ts";
import { bytes } from "./seal.ts";

export interface VerifyParts {
  readonly home: Home;
  /** All that are trusted, whether they still sign or not. */
  readonly keys: readonly NoteKey[];
  readonly outside: Outside | null;
}

/** Where a part ends: the block or the row that it looked at last. */
export interface VerifyPlace {
  readonly phase: "blocks" | "rows";
  readonly after: string;
  readonly source: number;
}

export interface VerifyPart {
  readonly report: Report;
  /** Null: that was all. */
  readonly next: VerifyPlace | null;
}

const START: VerifyPlace = { phase: "blocks", after: "0", source: 0 };
/** A part ends after so many rows; one block may be as large as that. */
const ROWS_A_PART = 20_000;
const BLOCKS_A_PART = 500;
const ROWS_AT_ONCE = 10_000;
const PATIENT = { patienceMs: 120_000 };

interface Known {
  readonly parts: VerifyParts;
  readonly run: Run;
  readonly s: string;
  readonly origins: Origins;
  readonly departures: Departures;
  readonly report: Report;
  readonly firstSigned: () => Promise<Signed | null>;
}

interface Signed {
  readonly height: string;
  readonly firstPos: string;
}

/** From this block on all are signed; before it there was no key. Null: none is, or there is no key to ask with. */
async function firstSignedOf(run: Run, s: string, keys: readonly NoteKey[]): Promise<Signed | null> {
  if (keys.length === 0) return null;
  const [row] = await run(
    `select height::text, first_pos::text from ${s}.evidence_block b where strpos(note, E'\\n\\n') > 0 order by b.height limit 1`,
  );
  return row ? { height: row[0] as string, firstPos: row[1] as string } : null;
}

export async function verifyPart(parts: VerifyParts, from: VerifyPlace = START): Promise<VerifyPart> {
  const { s } = parts.home;
  const run = parts.home.read("verify evidence");
  const origins = await originsOf(run, s);
  const report = emptyReport();
  const firstSigned = once(() => firstSignedOf(run, s, parts.keys));
  const departures = createDepartures({ run, s, origins, keys: parts.keys, report, firstSigned });
  const known: Known = { parts, run, s, origins, departures, report, firstSigned };
  const next = from.phase === "blocks" ? await verifyBlocks(known, from.after) : await findInserted(known, from);
  const [open] = await run(`select ((select count(*) from ${s}.evidence_pending)
    + greatest(0, (select next_pos - 1 from ${s}.evidence_state) - coalesce((select max(last_pos) from ${s}.evidence_block), 0)))::text`);
  report.unsealed = Number(open?.[0]);
  return { report, next };
}

interface Stored extends Block {
  readonly hash: Buffer;
  readonly note: string;
}

const blocksSql = (
  s: string,
) => `select height::text, encode(previous, 'hex'), first_pos::text, last_pos::text, encode(root, 'hex'),
  encode(hash, 'hex'), to_char(sealed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), note from ${s}.evidence_block b`;

export function storedBlock(row: Row): Stored {
  const [height, previous, firstPos, lastPos, root, hash, sealedAt, note] = row as readonly string[];
  const numbers = { height, firstPos, lastPos } as Pick<Block, "height" | "firstPos" | "lastPos">;
  const hashes = { previous: bytes(previous), root: bytes(root), hash: bytes(hash) };
  return { ...numbers, ...hashes, sealedAt: sealedAt as string, note: note as string };
}

export const blockSql = (s: string, where: string): string => `${blocksSql(s)} where ${where}`;

async function verifyBlocks(known: Known, after: string): Promise<VerifyPlace | null> {
  const { run, s, report } = known;
  const blocks = (
    await run(`${blocksSql(s)} where height >= $1::bigint order by b.height limit ${BLOCKS_A_PART + 1}`, [after])
  ).map(storedBlock);
  let before = blocks[0]?.height === after ? blocks.shift() : undefined;
  const copies = await copiesOf(known, after, blocks.at(-1)?.height ?? after, blocks.length <= BLOCKS_A_PART);
  let rows = 0;
  for (const block of blocks) {
    const previousHeight = before?.height ?? "0";
    if (BigInt(block.height) !== BigInt(previousHeight) + 1n)
      find(report, "block_missing", { height: String(BigInt(previousHeight) + 1n) });
    else if (!block.previous.equals(before?.hash ?? BEGINNING)) find(report, "chain_broken", { height: block.height });
    rows += await verifyBlock(known, block, copies?.get(block.height));
    before = block;
    if (rows >= ROWS_A_PART && block !== blocks.at(-1)) return { phase: "blocks", after: block.height, source: 0 };
  }
  if (blocks.length > BLOCKS_A_PART) return { phase: "blocks", after: before?.height ?? after, source: 0 };
  await known.departures.checkAll();
  return { phase: "rows", after: "0", source: 0 };
}

/** Notes by height of the blocks of this part. Null: the copy cannot be read from here. At the end also what the database has not. */
async function copiesOf({ parts, report }: Known, after: string, to: string, isEnd: boolean) {
  if (!parts.outside?.read) return null;
  const notes = new Map<string, string>();
  let beyond = 0n;
  for await (const { kind, number, note } of parts.outside.read() as AsyncIterable<Copied>) {
    if (kind !== "block" || !/^[0-9]+$/.test(number)) continue;
    const height = BigInt(number);
    if (height > BigInt(after) && height <= BigInt(to)) notes.set(number, note);
    if (height > BigInt(to) && height > beyond) beyond = height;
  }
  if (!isEnd || beyond === 0n) return notes;
  const detail = `the copy in ${parts.outside.place} goes to block ${beyond}, the database to ${to === "0" ? "none" : to}`;
  find(report, to === "0" ? "chain_deleted" : "tail_cut", { height: String(BigInt(to) + 1n), detail });
  return notes;
}

const SIGNED = { trusted: "yes", none: "no", bad: "no", unknown: "unknown" } as const;

/** Returns how many rows it has. */
async function verifyBlock(known: Known, block: Stored, copy: string | undefined): Promise<number> {
  const { parts, origins, report } = known;
  const { height } = block;
  const foundBefore = report.findings.length + report.more;
  const { text, signed } = readNote(block.note, parts.keys);
  if (text !== blockText(origins.ofBlock(height), block) || !hashOf(text).equals(block.hash))
    find(report, "block_edited", { height });
  if (signed === "bad") find(report, "signature_bad", { height });
  else if (parts.keys.length > 0 && signed === "unknown") find(report, "signature_unknown", { height });
  else if (signed === "none" && BigInt((await known.firstSigned())?.height ?? height) < BigInt(height))
    find(report, "unsigned", { height });
  const anchored = parts.outside?.read ? (copy === undefined ? "no" : "yes") : "unknown";
  if (copy !== undefined && readNote(copy, []).text !== text) find(report, "copy_differs", { height });
  const counts = await verifyRows(known, block);
  report.blocks++;
  const broken = report.findings.length + report.more > foundBefore;
  const state: Range["state"] = broken ? "broken" : counts.rows > 0 && counts.present === 0 ? "retired" : "intact";
  addRange(report.ranges, { from: height, to: height, state, anchored, signed: SIGNED[signed] });
  return counts.rows;
}

const leavesSql = (s: string, source: EvidenceSource) => `select p.pos::text, p.id::text, encode(p.leaf, 'hex'),
    case when t.${source.id} is not null then encode(${leafSql(source, "coalesce(t.salt, p.salt)")}, 'hex') end, p.gone::text,
    (t.${source.id} is not null)::text, to_char(p.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
  from ${s}.evidence_leaf p ${joinSql(s, source)} where p.source = ${source.number} and p.pos between $1::bigint and $2::bigint`;

async function verifyRows(known: Known, block: Stored): Promise<{ rows: number; present: number }> {
  const { run, s, report } = known;
  const { height, firstPos, lastPos } = block;
  const leaves: [pos: bigint, leaf: Buffer][] = [];
  let present = 0;
  for (const source of EVIDENCE_SOURCES) {
    for (const [pos, id, leaf, made, gone, there, at] of await run(leavesSql(s, source), [firstPos, lastPos], PATIENT)) {
      leaves.push([BigInt(pos as string), bytes(leaf)]);
      const where = { height, source: source.name, id };
      if (there === "true") {
        present++;
        if (made === leaf) report.intact++;
        else wrongRow(report, "row_changed", where);
        continue;
      }
      const left = await known.departures.of({ source, pos: pos as string, at: at as string, gone: gone ?? null });
      if (left === null) wrongRow(report, gone === "0" ? "row_lost" : "row_deleted", where);
      else report[left]++;
    }
  }
  leaves.sort(([a], [b]) => (a < b ? -1 : 1));
  const whole = BigInt(leaves.length) === BigInt(lastPos) - BigInt(firstPos) + 1n;
  if (!whole || !rootOf(leaves.map(([, leaf]) => leaf)).equals(block.root)) find(report, "leaf_changed", { height });
  return { rows: leaves.length, present };
}

function wrongRow(report: Report, kind: Parameters<typeof find>[1], where: Parameters<typeof find>[2]): void {
  report.broken++;
  find(report, kind, where);
}

/** Rows without a number that nobody noted: they came past the triggers. */
async function findInserted({ run, s, report }: Known, { source: from, after }: VerifyPlace): Promise<VerifyPlace | null> {
  const source = EVIDENCE_SOURCES[from];
  if (!source) return null;
  const { number, table, id, name } = source;
  const rows = await run(
    `with p as materialized (select t.${id} as id from ${s}.${table} t where t.${id} > $1::bigint order by t.${id} limit ${ROWS_AT_ONCE})
    select p.id::text, (exists (select from ${s}.evidence_leaf l where l.source = ${number} and l.id = p.id)
      or exists (select from ${s}.evidence_pending n where n.source = ${number} and n.id = p.id)
      or exists (select from ${s}.evidence_source o where o.source = ${number} and p.id > o.done_id and p.id <= o.until_id))::text from p order by p.id`,
    [after],
    PATIENT,
  );
  for (const [row, known] of rows) if (known !== "true") wrongRow(report, "row_inserted", { source: name, id: row ?? null });
  const last = rows.at(-1)?.[0];
  if (rows.length === ROWS_AT_ONCE && last) return { phase: "rows", source: from, after: last };
  return EVIDENCE_SOURCES[from + 1] ? { phase: "rows", source: from + 1, after: "0" } : null;
}

/** Whether a note belongs to this block's text; for proofs, which carry the note alone. */
export const isBlockNote = (note: string, keys: readonly NoteKey[]) => {
  const { text, signed } = readNote(note, keys);
  return { block: readBlockText(text), signed };
};
