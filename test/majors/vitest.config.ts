import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const REPO = fileURLToPath(new URL("../..", import.meta.url));

/**
 * What depends on the server's version: the conformance of the store, of the audit seam (its monthly partitions), of the usage seam (its
 * optional tables) and of the recovery seam (its triggers and views), and the SQL function. PG_MAJOR names the version.
 */
export default defineConfig({
  root: REPO,
  test: {
    include: [
      "test/conformance/postgres.test.ts",
      "test/audit/conformance.test.ts",
      "test/usage/conformance.test.ts",
      "test/recovery/conformance-postgres.test.ts",
      "test/recovery/postgres-tables.test.ts",
      "test/faults/sql-function.test.ts",
    ],
    globalSetup: [fileURLToPath(new URL("server.ts", import.meta.url))],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
