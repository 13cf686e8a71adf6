/**
 * The door `makegood/postgres`: the store, its migrations, and the embedded server.
 */
export { type Connection, type ConnectionOptions, createConnection } from "./connection.ts";
export { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from "./embedded.ts";
export { type MigrationState, migrateUp, migrationStatus, printMigrations } from "./migrate.ts";
export { daysAhead } from "./partitions.ts";
export { createPostgresStore, type PostgresStoreOptions } from "./postgres-store.ts";
