/**
 * The door `makegood/postgres`: the store, its migrations, and the embedded server.
 */
export { createConnection } from "./connection.js";
export { startEmbedded } from "./embedded.js";
export { migrateUp, migrationStatus, printMigrations } from "./migrate.js";
export { daysAhead } from "./partitions.js";
export { createPostgresStore } from "./postgres-store.js";
//# sourceMappingURL=index.js.map