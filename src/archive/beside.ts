/**
 * The archive held against what was written: each chunk's text, its number of lines and its chain, some at a time or all. What another machine
 * keeps, or a key that is not here would open, is not proven and no damage.
 */
import type { Beside, Found, PassOptions } from "../store/conservation.ts";
import type { Archive } from "./archive.ts";

/** Of texts that one slice reads, and of chunks. */
const SLICE = { bytesMax: 4 * 1_048_576, chunksMax: 100 };

const placeOf = (id: number): string => String(id).padStart(12, "0");

export function compareArchive(archive: Archive): (reach: PassOptions["reach"]) => Promise<Beside> {
  let after = 0;
  return async (reach) => {
    const from = reach === "slice" ? after : 0;
    const { faults, last, ended } = await archive.look(from, reach === "slice" ? SLICE : undefined);
    after = ended ? 0 : last;
    const found = faults
      .filter(({ away }) => !away)
      .map(
        ({ id, rows, fault }): Found => ({ kind: "archive_damaged", count: rows, ids: [], detail: fault, place: placeOf(id) }),
      );
    const [away] = faults.filter((one) => one.away);
    const part = { after: from === 0 ? "" : placeOf(from), to: ended ? "~" : placeOf(last) };
    return { found, unknown: away?.fault ?? null, part };
  };
}
