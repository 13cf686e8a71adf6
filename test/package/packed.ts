/**
 * The package as others get it: packed by npm in a copy of the tree, as in a clean clone, and installed into an empty project. It needs
 * the npm registry or a filled npm cache.
 */
import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

export const ROOT = new URL("../../", import.meta.url).pathname;
/** What git does not keep, wherever it is. */
const NOT_CLONED = ["node_modules", "dist", ".git", ".makegood", "coverage"];
/** Of an earlier build, and of no source: nobody may get it. */
const STALE = "dist/stale.js";

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Packed {
  readonly tarball: string;
  readonly bytes: number;
  /** Every path in it. */
  readonly files: readonly string[];
}

/** Runs a program to its end, in a folder that knows nothing of the run around it. */
export function run(program: string, args: readonly string[], cwd: string): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env: outsideEnv(), maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
}

/** Without what `npm test` says of its own package to the programs below it, and without the servers and stores that it is set to use. */
function outsideEnv(): NodeJS.ProcessEnv {
  const ours =
    /^(npm_(package|lifecycle)_|npm_config_local_prefix$|INIT_CWD$|NODE_ENV$|VITEST|MAKEGOOD_|DATABASE_URL|REDIS_|TEST_)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}

export async function runWell(program: string, args: readonly string[], cwd: string): Promise<Ran> {
  const ran = await run(program, args, cwd);
  if (ran.code === 0) return ran;
  throw new Error(`${basename(program)} ${args.join(" ")} ended with ${ran.code}\n${ran.stdout}\n${ran.stderr}`);
}

/** A folder of its own that a server process of another user can enter. */
export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "makegood-package-"));
  await chmod(folder, 0o755);
  return folder;
}

/** `npm pack` in a copy of the tree, with what an earlier build left in `dist`. */
export async function pack(folder: string): Promise<Packed> {
  const clone = join(folder, "clone");
  await cp(ROOT, clone, { recursive: true, filter: (path) => path === ROOT || !NOT_CLONED.includes(basename(path)) });
  await symlink(join(ROOT, "node_modules"), join(clone, "node_modules"));
  await mkdir(join(clone, "dist"));
  await writeFile(join(clone, STALE), "throw new Error('stale');\n");
  const { stdout } = await runWell("npm", ["pack", "--json", "--no-foreground-scripts", "--pack-destination", folder], clone);
  const [made] = JSON.parse(stdout) as { filename: string; size: number; files: { path: string }[] }[];
  if (made === undefined) throw new Error(`npm pack made nothing: ${stdout}`);
  return { tarball: join(folder, made.filename), bytes: made.size, files: made.files.map(({ path }) => path) };
}

/** An empty project with the package in it, and whatever else is named. Install scripts do not run: nothing may need them. */
export async function install(folder: string, { tarball }: Packed, others: readonly string[]): Promise<string> {
  const project = join(folder, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  await runWell("npm", ["install", ...quiet, tarball, ...others], project);
  return project;
}

export const textOf = (project: string, path: string): Promise<string> =>
  readFile(join(project, "node_modules/makegood", path), "utf8");
