/**
 * What a migration is: a number, a name and SQL as a function of the quoted schema. Forward only; never edited once released
 * (its checksum is kept in the database and compared).
 */
export interface Migration {
    readonly version: number;
    readonly name: string;
    readonly sql: (schema: string) => string;
}
