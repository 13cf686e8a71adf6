import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const REPO = fileURLToPath(new URL("../..", import.meta.url));

/** What depends on the server's version: the store's conformance and the SQL function. PG_MAJOR names the version. */
export default defineConfig({
  root: REPO,
  test: {
    include: ["test/conformance/postgres.test.ts", "test/faults/sql-function.test.ts"],
    globalSetup: [fileURLToPath(new URL("server.ts", import.meta.url))],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
