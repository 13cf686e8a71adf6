import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const REPO = fileURLToPath(new URL("../..", import.meta.url));

/** What depends on the server's version, on each of them: the store, its SQL function, and recovery's triggers and views. */
const EACH = ["test/conformance/postgres.test.ts", "test/faults/sql-function.test.ts", "test/recovery/postgres-tables.test.ts"];

/**
 * What else it keeps: audit with its monthly partitions, usage with its optional tables, recovery; and the receiver's inbox. What the oldest can, those after it can: it runs
 * them, the newest runs them with everything else, and MAKEGOOD_SOAK=1 has each in between run them, too.
 */
const SEAMS = [
  "test/audit/conformance.test.ts",
  "test/usage/conformance.test.ts",
  "test/recovery/records/*.test.ts",
  "test/inbox/*.test.ts",
];

const all = process.env.PG_MAJOR === "14" || process.env.MAKEGOOD_SOAK === "1";

/** PG_MAJOR names the version. */
export default defineConfig({
  root: REPO,
  test: {
    include: all ? [...EACH, ...SEAMS] : EACH,
    setupFiles: [fileURLToPath(new URL("../support/each-file.ts", import.meta.url))],
    globalSetup: [fileURLToPath(new URL("server.ts", import.meta.url))],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 1,
    experimental: { fsModuleCache: true },
  },
});
