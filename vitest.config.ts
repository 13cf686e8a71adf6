import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/adapters/**", "node_modules/**"],
    globalSetup: ["test/support/postgres-server.ts"],
    testTimeout: 30_000,
    // Real servers, kills and disks on a shared machine: a test that needed its second try is named in the report and is to be mended.
    retry: 1,
    hookTimeout: 60_000,
    fileParallelism: true,
    maxWorkers: 2,
  },
});
