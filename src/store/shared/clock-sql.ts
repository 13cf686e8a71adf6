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
