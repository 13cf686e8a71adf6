/**
 * How rows leave without breaking the proof: a signed record of which ones, how many and their root, in the transaction in which they go.
 * What is in no block yet is sealed first. Their leaves stay, so blocks still come to their roots; salts go.
 */
import type { DepartingMonth, DepartureReason, EvidenceName } from "../store/evidence.ts";
import type { Run } from "../store/home.ts";
import { AUDIT_SOURCE, EVIDENCE_SOURCES, type EvidenceSource } from "../store/shared/evidence-rows.ts";
import { type Departure, departureText } from "./block.ts";
import { createTree } from "./merkle.ts";
import { type NoteKey, signNote } from "./notes.ts";
import { bytes, installationOf, NOW_SQL, sealAllIn } from "./seal.ts";

export function sourceOf(name: EvidenceName): EvidenceSource {
  return EVIDENCE_SOURCES.find((one) => one.name === name) as EvidenceSource;
}

/** Leaves read at once for the root of a month. */
const PAGE = 10_000;
/** A month may hold millions. */
const PATIENT = { patienceMs: 300_000 };

async function record(run: Run, s: string, keys: readonly NoteKey[], one: Omit<Departure, "at">): Promise<string> {
  const [now] = await run(`select ${NOW_SQL}`);
  const whole = { ...one, at: now?.[0] as string };
  const note = signNote(departureText(await installationOf(run, s), whole), keys);
  const [written] = await run(
    `insert into ${s}.evidence_departure (kind, source, first_pos, last_pos, from_at, to_at, count, root, at, actor, reason, note)
    values ($1, $2, $3, $4, $5::timestamptz, $6::timestamptz, $7, decode($8, 'hex'), $9::timestamptz, $10, $11, $12) returning id::text`,
    [
      one.kind,
      sourceOf(one.source).number,
      one.firstPos,
      one.lastPos,
      one.fromAt,
      one.toAt,
      one.count,
      one.root.toString("hex"),
    ].concat([whole.at, one.actor, one.reason, note]),
  );
  await run("select set_config('makegood.departs', pg_current_xact_id()::text, true)");
  return written?.[0] as string;
}

/** As `Depart` of the store: in the transaction that deletes them. */
export async function departRows(
  run: Run,
  s: string,
  keys: readonly NoteKey[],
  name: EvidenceName,
  ids: readonly string[],
  why: DepartureReason,
): Promise<string[]> {
  const { number } = sourceOf(name);
  await sealAllIn(run, s, keys);
  const leaves = await run(
    `select id::text, pos::text, encode(leaf, 'hex') from ${s}.evidence_leaf l
    where source = ${number} and id = any ($1::bigint[]) and gone is null order by l.pos for update`,
    [ids],
  );
  const [firstPos, lastPos] = [leaves[0]?.[1], leaves.at(-1)?.[1]];
  if (!firstPos || !lastPos) return [];
  const tree = createTree();
  for (const [, , leaf] of leaves) tree.add(bytes(leaf));
  const range = { firstPos, lastPos, fromAt: null, toAt: null };
  const id = await record(run, s, keys, { ...why, source: name, ...range, count: leaves.length, root: tree.root() });
  const going = leaves.map(([one]) => one as string);
  await run(`update ${s}.evidence_leaf set gone = $2::bigint, salt = null where source = ${number} and id = any ($1::bigint[])`, [
    going,
    id,
  ]);
  return going;
}

type Span = Pick<Departure, "firstPos" | "lastPos" | "fromAt" | "toAt">;

/** Every leaf of a source and time that has not left otherwise, in order. */
export async function treeOf(run: Run, s: string, number: number, of: Span) {
  const tree = createTree();
  let last = String(BigInt(of.firstPos) - 1n);
  for (;;) {
    const page = await run(
      `select pos::text, encode(leaf, 'hex') from ${s}.evidence_leaf l where source = ${number} and pos > $1::bigint and pos <= $2::bigint
        and at >= $3::timestamptz and at < $4::timestamptz and gone is null order by l.pos limit ${PAGE}`,
      [last, of.lastPos, of.fromAt, of.toAt],
    );
    for (const [, leaf] of page) tree.add(bytes(leaf));
    last = page.at(-1)?.[0] ?? last;
    if (page.length < PAGE) return tree;
  }
}

const RETENTION = { kind: "retired", actor: "retention", reason: "the month is older than audit records are kept" } as const;

/** As `DepartMonth` of the store. */
export async function departMonth(run: Run, s: string, keys: readonly NoteKey[], month: DepartingMonth): Promise<void> {
  const { number, id } = AUDIT_SOURCE;
  await sealAllIn(run, s, keys);
  const time = { fromAt: month.from.toISOString(), toAt: month.to.toISOString() };
  const [bounds] = await run(
    `select min(l.pos)::text, max(l.pos)::text from ${month.table} t join ${s}.evidence_leaf l on l.source = ${number} and l.id = t.${id}`,
    [],
    PATIENT,
  );
  const [firstPos, lastPos] = [bounds?.[0], bounds?.[1]];
  if (!firstPos || !lastPos) return;
  const tree = await treeOf(run, s, number, { firstPos, lastPos, ...time });
  const range = { firstPos, lastPos, ...time };
  await record(run, s, keys, { ...RETENTION, source: AUDIT_SOURCE.name, ...range, count: tree.size, root: tree.root() });
  await run(
    `update ${s}.evidence_leaf set salt = null
    where source = ${number} and pos between $1 and $2 and at >= $3::timestamptz and at < $4::timestamptz and salt is not null`,
    [firstPos, lastPos, time.fromAt, time.toAt],
  );
}
