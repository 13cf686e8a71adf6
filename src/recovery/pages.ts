/** Pages by keyset: a cursor is where the page before ended. What is no cursor of ours is refused, never read as the beginning. */
import { MakegoodError } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";

export interface Page {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface Paged<T> {
  readonly data: T[];
  readonly nextCursor: string | null;
}

/** After all: pages go from new to old. */
const LAST_ID = "9223372036854775807";

export const pageLimit = (limit: number): number => Math.min(Math.max(1, limit), LIMITS.pageMax);

/** `rows` has one more than the page, if there is more. */
export function paged<T>(rows: readonly T[], limit: number, cursor: (last: T) => string): Paged<T> {
  const data = rows.slice(0, pageLimit(limit));
  const last = data.at(-1);
  return { data, nextCursor: rows.length > data.length && last !== undefined ? cursor(last) : null };
}

/** Occurrences are long: what goes through all of them holds no more at once. */
const EACH_PAGE = 200;

/** One page after the other; the next is read when the one before was dealt with. */
export async function* everyPage<T>(read: (page: Page) => Promise<Paged<T>>): AsyncGenerator<T[]> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: EACH_PAGE, cursor });
    yield page.data;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
}

export function badCursor(): MakegoodError {
  return new MakegoodError("invalid_request", "the cursor is not one of ours: pass next_cursor of the page before");
}

export function idCursor(cursor: string | undefined): string {
  if (cursor === undefined) return LAST_ID;
  if (!/^\d{1,18}$/.test(cursor)) throw badCursor();
  return cursor;
}
