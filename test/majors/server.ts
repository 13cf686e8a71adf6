/**
 * One private server of the major version in PG_MAJOR for a whole vitest run, from this folder's npm packages, started and
 * stopped as the product does it with its own.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { roomyMemory } from "../support/roomy-memory.ts";
import { trustAll } from "../support/trusting-server.ts";

export async function setup(): Promise<() => Promise<void>> {
  const major = process.env.PG_MAJOR ?? "";
  process.env.TEST_DATABASE_URL = process.env[`TEST_PG${major}_URL`] ?? "";
  if (process.env.TEST_DATABASE_URL !== "") return () => Promise.resolve();
  const folder = await mkdtemp(join(await roomyMemory(), `makegood-pg${major}-`));
  // As root the server runs under another user, who must be able to enter.
  await chmod(folder, 0o755);
  const server = await startEmbedded({ dataDir: join(folder, "data"), nativeDir: nativeOf(major) });
  const close = async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  if (!server.version.startsWith(`${major}.`)) {
    await close();
    throw new Error(`PostgreSQL ${server.version} was started where ${major} was asked for`);
  }
  await trustAll(server.url);
  process.env.TEST_DATABASE_URL = server.url;
  return close;
}

/** The folder `native` of the package for this major and platform. */
function nativeOf(major: string): string {
  const main = createRequire(import.meta.url).resolve(`pg${major}-${process.platform}-${process.arch}`);
  return join(dirname(main), "..", "native");
}
