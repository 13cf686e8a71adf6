/**
 * The chain of seals: each link, and each bucket as it was sealed, from the oldest that is kept.
 */
import { headOf } from "../../shared/sums.ts";
import type { Db } from "../db.ts";
import { Findings } from "./found.ts";
import { accountOf, wordsOf } from "./hours.ts";
import { READ_SEALS } from "./seal-scripts.ts";

const PAGE = 500;

export interface ChainEnd {
  readonly seals: number;
  readonly head: string;
  /** The last one that is no longer kept. */
  readonly tail: number;
  readonly tailHead: string;
}

type Row = readonly [text: string, fields: readonly (string | null)[]];

export interface SealWalk {
  no: number;
  head: string;
  found: Findings;
}

export const fromTail = ({ tail, tailHead }: ChainEnd): SealWalk => ({ no: tail, head: tailHead, found: new Findings() });

/** Seals after this one. True when it was the last part, and what was found is written down. */
export async function checkSeals(db: Db, at: SealWalk, end: ChainEnd): Promise<boolean> {
  const size = Math.min(PAGE, end.seals - at.no);
  const rows = size > 0 ? await db.run(READ_SEALS, [db.keys.key("books:seals")], [at.no, size]) : [];
  for (const [text, fields] of rows as Row[]) {
    const no = ++at.no;
    const [head = "", words] = sealOf(text);
    const [, topic = null, tenantId = null, hour] = words;
    const of = { topic, tenantId, hour: hour === undefined ? null : new Date(Number(hour) * 1_000) };
    const wrong = (detail: string): void => at.found.add({ kind: "seal_edited", id: null, ...of, detail });
    if (text === "") wrong(`seal ${no} is gone`);
    else if (head !== headOf(at.head, [String(no), ...words])) wrong(`seal ${no} is not as it was made`);
    else if (!text.startsWith("r")) compare(no, words, fields, wrong);
    at.head = head;
  }
  if (at.no < end.seals) return false;
  if (at.head !== end.head)
    at.found.add({
      ...{ kind: "seal_edited", id: null, topic: null, tenantId: null, hour: null },
      detail: `the chain of seals does not end with the head of seal ${end.seals}`,
    });
  await at.found.write(db, "seals", true);
  return true;
}

function compare(no: number, words: readonly string[], fields: Row[1], wrong: (detail: string) => void): void {
  const account = accountOf(words[0] as string, fields);
  if (account.topic === "") wrong(`the bucket of seal ${no} is gone`);
  else if (account.sealed === String(no) && JSON.stringify(wordsOf(account)) !== JSON.stringify(words))
    wrong(`the bucket was sealed with ${words[4]} messages and says ${account.accepted.n}, or its sums differ`);
}

function sealOf(text: string): [head: string | undefined, words: string[]] {
  const [, head, words] = /^r?([0-9a-f]{64}) [^ ]* (.*)$/s.exec(text) ?? [];
  try {
    return [head, words === undefined ? [] : (JSON.parse(words) as string[])];
  } catch {
    return [head, []];
  }
}
