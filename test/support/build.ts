/**
 * Compiles `src` for tests that start real child processes: Node 20 cannot run TypeScript. The result is cached by the state
 * of the sources, and several workers may ask at the same moment: each compiles into a folder of its own and one rename wins.
 * Types are not checked here (`npm run check` does that), so that a half-written file elsewhere stops no suite.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { bundle, childScripts } from "./bundle.ts";

const REPO = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
/** Inside node_modules, so that bare imports resolve and git, Biome and tsc never look at it. */
const CACHE = join(REPO, "node_modules", ".cache", "makegood-test");
/** Another run may still use an older build; a day later nobody does. */
const KEPT_MS = 24 * 3_600_000;

let built: Promise<string> | undefined;

/** The folder that holds the compiled `src`, file by file, as `dist` would. */
export async function builtDist(): Promise<string> {
  built ??= build();
  return join(await built, "dist");
}

/**
 * The same for processes: `join(await startableDist(), "store/postgres/embedded.js")`. The modules that a process starts with are under their
 * names, and what they import is in a few large files: hundreds of small ones take most of the time of a start.
 */
export async function startableDist(): Promise<string> {
  built ??= build();
  return join(await built, "startable");
}

async function build(): Promise<string> {
  const home = join(CACHE, await stateOfSources());
  if (await exists(home)) {
    await utimes(home, new Date(), new Date());
    return home;
  }
  const mine = join(CACHE, `.building-${process.pid}-${process.hrtime.bigint()}`);
  await mkdir(mine, { recursive: true });
  try {
    const tsc = join(REPO, "node_modules", "typescript", "bin", "tsc");
    const flags = [
      "-p",
      join(REPO, "tsconfig.build.json"),
      "--noCheck",
      "--declaration",
      "false",
      "--outDir",
      join(mine, "dist"),
    ];
    await promisify(execFile)(process.execPath, [tsc, ...flags], { cwd: REPO }).catch(async (error) => {
      if (!(await exists(join(mine, "dist")))) throw error; // a syntax error: tsc complains, and writes what it can
    });
    await bundle(join(mine, "dist"), join(mine, "startable"), join(REPO, "test"));
    // Node stops looking for a package.json at node_modules: without one beside it, dist would be taken for CommonJS.
    await copyFile(join(REPO, "package.json"), join(mine, "package.json"));
    await rename(mine, home).catch(async (error) => {
      if (!(await exists(home))) throw error; // otherwise another worker was first, with the same sources
    });
  } finally {
    await rm(mine, { recursive: true, force: true });
  }
  await removeOld();
  return home;
}

async function stateOfSources(): Promise<string> {
  const hash = createHash("sha256");
  const files = (await readdir(join(REPO, "src"), { recursive: true })).sort().map((file) => join("src", file));
  const scripts = (await childScripts(join(REPO, "test"))).map((file) => join("test", file));
  const how = ["package.json", "tsconfig.json", "tsconfig.build.json", "test/support/bundle.ts"];
  for (const file of [...files, ...scripts, ...how]) {
    const found = await stat(join(REPO, file)).catch(() => undefined);
    if (found?.isFile()) hash.update(`${file} ${found.mtimeMs} ${found.size}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

async function removeOld(): Promise<void> {
  for (const name of await readdir(CACHE)) {
    const path = join(CACHE, name);
    const found = await stat(path).catch(() => undefined);
    if (found && Date.now() - found.mtimeMs > KEPT_MS) await rm(path, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
