import { defineConfig } from "vitest/config";

const soak = process.env.MAKEGOOD_SOAK === "1";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Minutes on every store, its short form is in the conformance suites: `npm run soak:order`.
    exclude: ["test/adapters/**", "node_modules/**", ...(soak ? [] : ["test/conformance/many-keys.test.ts"])],
    globalSetup: ["test/support/postgres-server.ts"],
    testTimeout: 30_000,
    // Real servers, kills and disks on a shared machine: a test that needed its second try is named in the report and is to be mended.
    retry: 1,
    hookTimeout: 60_000,
    fileParallelism: true,
    maxWorkers: 2,
  },
});
