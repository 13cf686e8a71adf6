/**
 * The door `makegood/postgres`: the store, its migrations, and the embedded server.
 */

export { type Connection, type ConnectionOptions, createConnection } from "./connection.ts";
export {
  type BackupManifest,
  type BackupOptions,
  backupEmbedded,
  checkBackup,
  type RestoreOptions,
  restoreEmbedded,
} from "./embedded/backup.ts";
export { holdsData } from "./embedded/holds-data.ts";
export { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from "./embedded.ts";
export { examinePostgres } from "./examine.ts";
export { KERNEL_SET, type MigrationState, migrateUp, migrationStatus, OPTIONAL_SETS, printMigrations } from "./migrate.ts";
export type { MigrationSet } from "./migrations/migration.ts";
export { daysAhead } from "./partitions.ts";
export { createPostgresStore, type PostgresStoreOptions } from "./postgres-store.ts";
export { createPostgresUsageStore, type PostgresUsageOptions } from "./usage/usage-store.ts";
