/**
 * The data directory of an embedded server that was made and never used, for copies: most tests have nothing to do with initdb, which takes
 * seconds each time. The files of a run share one.
 */
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { atEnd } from "./at-end.ts";
import { roomyMemory } from "./roomy-memory.ts";

let template: Promise<string> | undefined;
/** Without a run's folder it is this file's own. */
let own: string | undefined;

atEnd(async () => {
  if (own !== undefined) await rm(own, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  [own, template] = [undefined, undefined];
});

/** Fills a directory as a first start would. */
export async function copyTemplate(into: string): Promise<void> {
  template ??= findTemplate();
  await promisify(execFile)("cp", ["-a", `${await template}/.`, into]);
}

async function findTemplate(): Promise<string> {
  const run = process.env.TEST_RUN_FOLDER;
  if (run === undefined) {
    own = await makeTemplate();
    return own;
  }
  const shared = join(run, "template");
  const isThere = () => stat(shared).then(Boolean, () => false);
  if (await isThere()) return shared;
  const made = await makeTemplate();
  await rename(made, shared).catch(async (error) => {
    await rm(made, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    if (!(await isThere())) throw error; // otherwise another file was first
  });
  return shared;
}

async function makeTemplate(): Promise<string> {
  const folder = await mkdtemp(join(process.env.TEST_RUN_FOLDER ?? (await roomyMemory()), "makegood-template-"));
  // As root the server runs under another user, who must be able to enter.
  await chmod(folder, 0o755);
  const server = await startEmbedded({ dataDir: folder });
  await server.close();
  // Each copy shall find a port of its own, and count the starts in its own log.
  for (const name of ["pgdata/postmaster.opts", "postgres.log"]) await rm(join(folder, name));
  return folder;
}
