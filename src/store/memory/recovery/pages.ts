/** Pages of sorted rows. A cursor names the place of the last row shown, so rows that come or go beside it move nothing. */
import { MakegoodError } from "../../../message/errors.ts";
import { LIMITS } from "../../../message/limits.ts";
import type { Paged } from "../../recovery.ts";

/** Where a row stands in its list: compared member by member. */
export type Place = readonly (number | string)[];

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** `rows` in any order; `direction` 1: lowest place first. */
export function paged<T>(rows: Iterable<T>, page: PageRequest, placeOf: (row: T) => Place, direction: 1 | -1): Paged<T> {
  const after = page.cursor === undefined ? null : readCursor(page.cursor);
  const found = [...rows]
    .map((row) => ({ row, place: placeOf(row) }))
    .filter(({ place }) => after === null || compare(place, after) * direction > 0)
    .sort((a, b) => compare(a.place, b.place) * direction);
  const limit = Math.min(Math.max(1, Math.trunc(page.limit)), LIMITS.pageMax);
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  return { data: shown.map(({ row }) => row), nextCursor: found.length > limit && last ? writeCursor(last.place) : null };
}

function compare(a: Place, b: Place): number {
  for (const [i, member] of a.entries()) {
    const other = b[i] as number | string;
    if (member !== other) return member < other ? -1 : 1;
  }
  return 0;
}

const writeCursor = (place: Place): string => Buffer.from(JSON.stringify(place)).toString("base64url");

function readCursor(cursor: string): Place {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    if (Array.isArray(place) && place.every((member) => typeof member === "number" || typeof member === "string")) return place;
  } catch {
    // Said below.
  }
  throw new MakegoodError("invalid_request", "This cursor is not one that a page before returned.", { cursor });
}
