/** A copy that was kept outside, against the notes that a database has now: for a person who trusts the copy more than the server. */
import { readBlockText } from "./block.ts";
import { readNote } from "./notes.ts";
import type { Copied } from "./outside.ts";
import { emptyReport, find, type Report } from "./report.ts";

export interface KnownBlock {
  readonly height: string;
  readonly note: string;
}

/** `known`: the block of a height; null: the database has none. */
export async function compareCopies(
  copies: AsyncIterable<Copied>,
  known: (height: string) => Promise<KnownBlock | null>,
): Promise<{ readonly report: Report; readonly compared: number }> {
  const report = emptyReport();
  let compared = 0;
  for await (const { kind, number: height, note } of copies) {
    if (kind !== "block" || readBlockText(readNote(note, []).text)?.height !== height) continue;
    compared++;
    const block = await known(height);
    if (block === null) find(report, "tail_cut", { height, detail: `the copy has block ${height}, the database has not` });
    else if (readNote(block.note, []).text !== readNote(note, []).text) find(report, "copy_differs", { height });
  }
  return { report, compared };
}
