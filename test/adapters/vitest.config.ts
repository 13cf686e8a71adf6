import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  test: {
    root: here("."),
    include: ["*.test.ts"],
    setupFiles: [here("../support/quiet-log.ts")],
    globalSetup: [here("../support/postgres-server.ts"), here("support/generate-prisma.mjs")],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
