/**
 * The clock of a statement: the server's own, or a fixed moment that only tests and simulation set. statement_timestamp()
 * and not now(): in a caller's transaction now() is the transaction's start (DO-19); and not clock_timestamp(), which an
 * index condition cannot use.
 */
export function clockSql(now: Date | undefined): string {
  if (now === undefined) return "statement_timestamp()";
  return `timestamptz '${now.toISOString()}'`;
}

/** Statements are text made once per schema; with a fixed `now` they are made again each time. */
export function perClock<T>(make: (clock: string) => T): (now: Date | undefined) => T {
  const usual = make(clockSql(undefined));
  return (now) => (now === undefined ? usual : make(clockSql(now)));
}

/** A time as text, and the time that was read back. */
export const epoch = (column: string): string => `extract(epoch from ${column})::text`;

export const fromEpoch = (seconds: string | null | undefined): Date | null =>
  seconds ? new Date(Math.round(Number(seconds) * 1_000)) : null;
