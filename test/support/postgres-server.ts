/**
 * One private PostgreSQL for the whole test run, started before the first file and stopped after the last.
 * TEST_DATABASE_URL names another server instead (the other majors, a pooler); every test makes a schema of its own in it. What is
 * tested for durability has servers of its own, on the disk.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { roomyMemory } from "./roomy-memory.ts";
import { trustAll } from "./trusting-server.ts";

export async function setup(): Promise<() => Promise<void>> {
  if (process.env.TEST_DATABASE_URL) return async () => {};
  const dataDir = await mkdtemp(join(await roomyMemory(), "makegood-test-"));
  // As root the server runs under another user, who must be able to enter.
  await chmod(dataDir, 0o755);
  const server = await startEmbedded({ dataDir: join(dataDir, "data") });
  await trustAll(server.url);
  process.env.TEST_DATABASE_URL = server.url;
  // What several files of the run share: embedded-template.ts.
  process.env.TEST_RUN_FOLDER = dataDir;
  return async () => {
    await server.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
}
