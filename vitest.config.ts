import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";

/** What reads the source and the documents. */
const HOUSE = [
  "test/house-rules/*.test.ts",
  "test/docs/docs.test.ts",
  "test/docs/traceability.test.ts",
  "test/docs/printed.test.ts",
  "test/deploy/alerts.test.ts",
  "test/deploy/dashboards.test.ts",
  "test/runbooks/pages.test.ts",
];

/** What every store is held to, on the one that needs no server. */
const MEMORY = [
  "test/conformance/memory.test.ts",
  "test/conformance/test-store.test.ts",
  "test/property/memory.test.ts",
  "test/simulation/simulation.test.ts",
];

/** With a PostgreSQL of the run's own. */
const SERVED = {
  // Files share a process, and each module is loaded once in it: loading was a third of what most of them took.
  isolate: false,
  setupFiles: ["test/support/quiet-log.ts", "test/support/each-file.ts"],
  globalSetup: ["test/support/postgres-server.ts"],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // Real servers, kills and disks on a shared machine: a test that needed its second try is named in the report and is to be mended.
  retry: 1,
};

export default defineConfig({
  test: {
    // Four for two cores: most of the long files wait for processes and clocks.
    maxWorkers: 4,
    // A run starts vitest eight times: what one of them transformed, by its content, the next one reads.
    experimental: { fsModuleCache: true },
    // What a test waits for is not a measure of speed: a busy machine may take its time.
    expect: { poll: { timeout: 15_000 } },
    sequence: { sequencer: LongestFirst },
    setupFiles: ["test/support/quiet-log.ts"],
    projects: [
      // Beside the compiler, the linter and the next stage: reading every file may take its time.
      { extends: true, test: { name: "house", include: HOUSE, testTimeout: 60_000 } },
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts"],
          // Files share a process, and each module is loaded once in it: loading is most of what they take.
          isolate: false,
          testTimeout: 60_000,
          retry: 1,
        },
      },
      { extends: true, test: { name: "memory", include: MEMORY, testTimeout: 60_000, retry: 1 } },
      {
        extends: true,
        test: {
          name: "servers",
          include: ["test/**/*.test.ts"],
          exclude: [
            "test/adapters/**",
            "node_modules/**",
            "test/unit/**",
            "test/pooler/**",
            ...HOUSE,
            ...MEMORY,
            // Minutes on every store, its short form is in the conformance suites: `npm run soak:order`.
            ...(soak ? [] : ["test/conformance/many-keys.test.ts"]),
            // Builds the version before out of the history, which a copy of the tree does not have: `npm run soak:versions`.
            ...(soak ? [] : ["test/faults/versions-beside.test.ts"]),
          ],
          ...SERVED,
        },
      },
      { extends: true, test: { name: "pooler", include: ["test/pooler/*.test.ts"], ...SERVED } },
    ],
  },
});
