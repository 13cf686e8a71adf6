/**
 * What a migration is: a number, a name and SQL as a function of the quoted schema. Forward only; never edited once released
 * (its checksum is kept in the database and compared).
 */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: (schema: string) => string;
}

/** A numbered list with a ledger of its own. The kernel's is always applied; a preset's only where it is used. */
export interface MigrationSet {
  readonly name: string;
  /** The table, in our schema, that says what was applied. */
  readonly ledger: string;
  readonly migrations: readonly Migration[];
}
