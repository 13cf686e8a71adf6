/** A record, said once: the list to select, the reader of a row and the type all come from one table of members. */
import type { Row } from "../store/home.ts";
import { epoch, fromEpoch } from "../store/shared/clock-sql.ts";

export interface Column<T> {
  readonly sql: string;
  readonly read: (text: string | null) => T;
}

const column =
  <T>(read: (text: string | null) => T, cast = (sql: string) => `(${sql})::text`) =>
  (sql: string): Column<T> => ({ sql: cast(sql), read });
const orNull =
  <T>(read: (text: string) => T) =>
  (text: string | null) =>
    text === null ? null : read(text);

export const text = <T extends string = string>(sql: string): Column<T> => ({ sql, read: (found) => found as T });
export const textOrNull = <T extends string = string>(sql: string): Column<T | null> => text(sql) as Column<T | null>;
export const int = column(Number);
export const intOrNull = column(orNull(Number));
export const flag = column((found) => found === "true");
export const flagOrNull = column(orNull((found) => found === "true"));
export const moment = column((found) => fromEpoch(found) as Date, epoch);
export const momentOrNull = column(fromEpoch, epoch);

export type RecordOf<C> = { readonly [K in keyof C]: C[K] extends Column<infer T> ? T : never };

/** `list` is what to select, `of` reads such a row, `from` one that begins at the column so numbered. */
export function columns<C extends Record<string, Column<unknown>>>(members: C) {
  const all = Object.entries(members);
  const from = (first: number, row: Row) =>
    Object.fromEntries(all.map(([name, { read }], at) => [name, read(row[first + at] ?? null)])) as RecordOf<C>;
  return { list: all.map(([, { sql }]) => sql).join(", "), from, of: (row: Row) => from(0, row) };
}
