/**
 * The proof of one record: the record itself, its salt, its place in a block, the path to the block's root and the block's signed note. It is
 * checked without a store, by anyone who has it and knows the key.
 */
import type { Home, Run } from "../store/home.ts";
import { EVIDENCE_SOURCES, type EvidenceSource, joinSql, rowContent } from "../store/shared/evidence-rows.ts";
import { createPaths, leafHash, rootByPath } from "./merkle.ts";
import type { NoteKey, Signed } from "./notes.ts";
import { bytes } from "./seal.ts";
import { blockSql, isBlockNote, storedBlock } from "./verify.ts";

export const PROOF_FORM = "makegood-evidence-proof/1";

export interface Proof {
  readonly form: typeof PROOF_FORM;
  readonly source: EvidenceSource["name"];
  /** Null: erased, and only that a record was sealed here can still be shown. */
  readonly record: Readonly<Record<string, string | null>> | null;
  readonly salt: string | null;
  readonly leaf: string;
  readonly position: string;
  readonly path: readonly string[];
  readonly note: string;
}

interface Leaf {
  readonly pos: string;
  readonly leaf: string;
  readonly salt: string | null;
  readonly fields: readonly (string | null)[] | null;
}

async function leafOf(run: Run, s: string, source: EvidenceSource, id: string): Promise<Leaf | null> {
  const fields = Object.values(source.fields).join(", ");
  const [row] = await run(
    `select p.pos::text, encode(p.leaf, 'hex'), replace(coalesce(t.salt, p.salt)::text, '-', ''), (t.${source.id} is not null)::text, ${fields}
    from ${s}.evidence_leaf p ${joinSql(s, source)} where p.source = ${source.number} and p.id = $1::bigint`,
    [id],
  );
  if (!row) return null;
  const [pos, leaf, salt, there, ...values] = row;
  return { pos: pos as string, leaf: leaf as string, salt: salt ?? null, fields: there === "true" ? values : null };
}

export interface BlockLeaves {
  readonly note: string;
  readonly firstPos: string;
  readonly size: number;
  pathOf(index: number): Buffer[];
}

/** The block that holds a number, with its leaves; null: it is in none yet. */
export async function blockWith(run: Run, s: string, pos: string): Promise<BlockLeaves | null> {
  const [row] = await run(blockSql(s, "b.last_pos >= $1::bigint order by b.last_pos limit 1"), [pos]);
  if (!row) return null;
  const { note, firstPos, lastPos } = storedBlock(row);
  if (BigInt(firstPos) > BigInt(pos)) return null;
  const numbers = EVIDENCE_SOURCES.map(({ number }) => number).join(", ");
  const leaves = await run(
    `select encode(leaf, 'hex') from ${s}.evidence_leaf where source in (${numbers}) and pos between $1::bigint and $2::bigint order by pos`,
    [firstPos, lastPos],
  );
  return { note, firstPos, size: leaves.length, pathOf: createPaths(leaves.map(([leaf]) => bytes(leaf))) };
}

/** Null: no such row was ever numbered. "unsealed": it is in no block yet. */
export async function prove(
  home: Home,
  source: EvidenceSource,
  id: string,
  known?: BlockLeaves,
): Promise<Proof | "unsealed" | null> {
  const run = home.read("prove a record");
  const leaf = await leafOf(run, home.s, source, id);
  if (leaf === null) {
    const { number } = source;
    const [noted] = await run(
      `select (exists (select from ${home.s}.evidence_pending where source = ${number} and id = $1::bigint) or exists
        (select from ${home.s}.evidence_source where source = ${number} and $1::bigint > done_id and $1::bigint <= until_id))::text`,
      [id],
    );
    return noted?.[0] === "true" ? "unsealed" : null;
  }
  const has =
    known && BigInt(leaf.pos) >= BigInt(known.firstPos) && BigInt(leaf.pos) < BigInt(known.firstPos) + BigInt(known.size);
  const block = has ? known : await blockWith(run, home.s, leaf.pos);
  if (block === null) return "unsealed";
  const index = Number(BigInt(leaf.pos) - BigInt(block.firstPos));
  const record = leaf.fields && Object.fromEntries(Object.keys(source.fields).map((name, i) => [name, leaf.fields?.[i] ?? null]));
  return {
    form: PROOF_FORM,
    source: source.name,
    ...{ record, salt: record === null ? null : leaf.salt, leaf: leaf.leaf, position: leaf.pos },
    path: block.pathOf(index).map((one) => one.toString("base64")),
    note: block.note,
  };
}

export interface Checked {
  readonly ok: boolean;
  readonly signed: Signed;
  /** False: the record is gone, and only its place is proven. */
  readonly whole: boolean;
  readonly height: string | null;
  readonly sealedAt: string | null;
  readonly id: string | null;
  readonly fault: string | null;
}

const refusedProof = (fault: string, known: Partial<Checked> = {}): Checked => ({
  ...{ signed: "none", whole: false, height: null, sealedAt: null, id: null },
  ...known,
  ...{ ok: false, fault },
});

/** `keys`: those that the reader trusts; without any a proof is only shown to agree with itself. */
export function checkProof(given: unknown, keys: readonly NoteKey[]): Checked {
  const { form, source: name, record, salt, leaf, position, path, note } = (given ?? {}) as Partial<Proof>;
  const source = EVIDENCE_SOURCES.find((one) => one.name === name);
  if (form !== PROOF_FORM || !source || typeof note !== "string" || typeof leaf !== "string" || !Array.isArray(path))
    return refusedProof(`it is not a proof of the form ${PROOF_FORM}`);
  const { block, signed } = isBlockNote(note, keys);
  const id = record?.event_id ?? record?.[source.id] ?? null;
  if (block === null || !/^[0-9]+$/.test(position ?? ""))
    return refusedProof("its note is not the note of a block", { signed, id });
  const known = { signed, id, height: block.height, sealedAt: block.sealedAt };
  if (signed === "bad") return refusedProof("a signature is not over the note", known);
  if (keys.length > 0 && signed !== "trusted") return refusedProof("the note is not signed by a key that is trusted", known);
  if (record) {
    const fields = Object.keys(source.fields).map((member) => (record as Record<string, string | null>)[member] ?? null);
    const made = leafHash(bytes(salt), rowContent(source, fields)).toString("hex");
    if (made !== leaf || bytes(salt).length !== 16) return refusedProof("the record is not what was sealed", known);
  }
  const size = BigInt(block.lastPos) - BigInt(block.firstPos) + 1n;
  const index = BigInt(position as string) - BigInt(block.firstPos);
  const steps = path.map((one) => Buffer.from(String(one), "base64"));
  const root = index >= 0n && index < size ? rootByPath(bytes(leaf), Number(index), Number(size), steps) : null;
  if (!root?.equals(block.root)) return refusedProof("its path does not come to the root of the note", known);
  return { ok: true, whole: Boolean(record), ...known, fault: null };
}
