/** What a verification says: ranges of blocks by how they stand, each row that is wrong, and how much left the proper way. */

export const FINDINGS = {
  row_changed: "the row is not what was sealed",
  row_deleted: "the row was sealed, and is gone without a record of its departure",
  row_lost: "the row was gone before it could be sealed",
  row_inserted: "the row came past the triggers and is in no block: nobody vouches for when it was written",
  leaf_changed: "the leaves do not come to the block's root",
  block_edited: "the block does not agree with its own note",
  chain_broken: "the block does not follow on the one before it",
  block_missing: "there is no such block, and there are later ones",
  copy_differs: "the copy outside has another note for this block",
  tail_cut: "the copy outside has blocks that the database has not",
  chain_deleted: "the copy outside has blocks and the database has none",
  signature_bad: "a signature is not over this text",
  signature_unknown: "signed by a key that is not among the trusted ones",
  unsigned: "not signed, and a block before it is",
  departure_wrong: "the record of a departure does not agree with its own note, or with what left",
} as const;

export type FindingKind = keyof typeof FINDINGS;

export interface Finding {
  readonly kind: FindingKind;
  /** Of the block; null: about no block. */
  readonly height: string | null;
  readonly source: string | null;
  /** Of the row, as its table has it; for audit also found by `makegood audit show`. */
  readonly id: string | null;
  readonly detail: string;
}

export interface Range {
  readonly from: string;
  readonly to: string;
  readonly state: "intact" | "broken" | "retired";
  /** Its notes are in the copy outside: `unknown` where that cannot be read from here. */
  readonly anchored: "yes" | "no" | "unknown";
  /** By a trusted key; `unknown`: signed, and there is no key to ask with. */
  readonly signed: "yes" | "no" | "unknown";
}

export interface Report {
  readonly ranges: Range[];
  readonly findings: Finding[];
  /** Findings beyond those that are listed. */
  more: number;
  blocks: number;
  intact: number;
  retired: number;
  erased: number;
  broken: number;
  /** Rows without a block yet. */
  unsealed: number;
}

export const FINDINGS_MAX = 1_000;

export const emptyReport = (): Report => ({
  ...{ ranges: [], findings: [], more: 0, blocks: 0 },
  ...{ intact: 0, retired: 0, erased: 0, broken: 0, unsealed: 0 },
});

export function find(report: Report, kind: FindingKind, where: Partial<Omit<Finding, "kind">> = {}): void {
  const whole = { kind, height: null, source: null, id: null, detail: FINDINGS[kind], ...where };
  if (report.findings.length < FINDINGS_MAX) report.findings.push(whole);
  else report.more++;
}

/** Adds a block to the range before it where both stand the same. */
export function addRange(ranges: Range[], one: Range): void {
  const last = ranges.at(-1);
  const same = last && last.state === one.state && last.anchored === one.anchored && last.signed === one.signed;
  if (same && BigInt(last.to) + 1n === BigInt(one.from)) ranges[ranges.length - 1] = { ...last, to: one.to };
  else ranges.push(one);
}

/** The part of a long verification that came next, added to what was known. */
export function joinReports(sum: Report, part: Report): void {
  for (const range of part.ranges) addRange(sum.ranges, range);
  for (const { kind, ...where } of part.findings) find(sum, kind, where);
  sum.more += part.more;
  sum.unsealed = part.unsealed;
  for (const name of ["blocks", "intact", "retired", "erased", "broken"] as const) sum[name] += part[name];
}
