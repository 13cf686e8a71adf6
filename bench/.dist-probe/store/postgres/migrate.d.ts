import type { Connection } from "./connection.ts";
export interface MigrationState {
    readonly version: number;
    readonly name: string;
    readonly applied: boolean;
    readonly appliedAt: string | null;
}
export declare function migrateUp(connection: Connection, schema: string): Promise<string[]>;
export declare function migrationStatus(connection: Connection, schema: string): Promise<MigrationState[]>;
/** Everything as one script for a DBA to read and run. */
export declare function printMigrations(schema: string): string;
