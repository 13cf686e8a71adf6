/** The package as it was before a file came into it, compiled out of the history for tests of two versions beside each other. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const REPO = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
/** Inside node_modules, so that bare imports resolve; what it imports is of this version. */
const CACHE = join(REPO, "node_modules", ".cache", "makegood-test");

/** The folder with the compiled `src` of the commit before the one that added `file`. */
export async function builtBefore(file: string): Promise<string> {
  const git = async (...args: string[]) => (await run("git", args, { cwd: REPO })).stdout.trim();
  const added = (await git("log", "--diff-filter=A", "--format=%H", "--", file)).split("\n").at(-1);
  if (!added) throw new Error(`the version before ${file} is needed, and its commit is not in this history: fetch all of it`);
  const commit = await git("rev-parse", `${added}^`);
  const home = join(CACHE, `before-${commit.slice(0, 16)}`);
  if (await stat(home).catch(() => undefined)) return join(home, "dist");
  const mine = `${home}.${process.pid}`;
  await mkdir(mine, { recursive: true });
  try {
    const archive = spawn("git", ["archive", commit, "src", "package.json", "tsconfig.json", "tsconfig.build.json"], {
      cwd: REPO,
    });
    const unpack = spawn("tar", ["-x", "-C", mine], { stdio: [archive.stdout, "inherit", "inherit"] });
    const [code] = await once(unpack, "close");
    if (code !== 0) throw new Error(`tar ended with ${code}`);
    const tsc = join(REPO, "node_modules", "typescript", "bin", "tsc");
    const flags = ["-p", join(mine, "tsconfig.build.json"), "--noCheck", "--declaration", "false"];
    await run(process.execPath, [tsc, ...flags], { cwd: mine }).catch(async (error) => {
      if (!(await stat(join(mine, "dist")).catch(() => undefined))) throw error;
    });
    await rename(mine, home);
  } finally {
    await rm(mine, { recursive: true, force: true });
  }
  return join(home, "dist");
}
