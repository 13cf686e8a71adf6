/**
 * Makes one JavaScript file of the simulation and the source it runs on, inside node_modules so that packages resolve and nobody else looks
 * at it. `edits`: text that is replaced on the way, for planted defects; the files themselves are never touched.
 */
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";

const REPO = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** `edits`: [{ file, find, replace }], `file` from the repository's root. Each text must be there, once. */
export async function bundle(edits = []) {
  const name = `${process.pid}-${createHash("sha256").update(JSON.stringify(edits)).digest("hex").slice(0, 8)}`;
  const outDir = join(REPO, "node_modules", ".cache", "makegood-simulate", name);
  await rm(outDir, { recursive: true, force: true });
  await mkdir(outDir, { recursive: true });
  const left = new Set(edits);
  await build({
    root: REPO,
    configFile: false,
    logLevel: "error",
    plugins: [{ name: "edits", enforce: "pre", transform: (code, id) => edited(code, id, edits, left) }],
    build: {
      ssr: join(REPO, "test/simulation/main.ts"),
      outDir,
      target: "node20",
      minify: false,
      emptyOutDir: true,
      rollupOptions: { output: { entryFileNames: "main.mjs" } },
    },
  });
  if (left.size > 0) throw new Error(`not part of what runs: ${[...left].map(({ file }) => file).join(", ")}`);
  if (made.size === 0) process.once("exit", clear);
  made.add(outDir);
  return pathToFileURL(join(outDir, "main.mjs")).href;
}

/** Bundles of this process: once it ends nobody needs them. */
const made = new Set();
const clear = () => {
  for (const outDir of made) rmSync(outDir, { recursive: true, force: true });
};

function edited(code, id, edits, left) {
  let text = code;
  for (const edit of edits) {
    if (id !== join(REPO, edit.file)) continue;
    left.delete(edit);
    const parts = text.split(edit.find);
    if (parts.length !== 2)
      throw new Error(`${edit.file} has ${parts.length - 1} times what ${edit.name ?? "an edit"} looks for`);
    text = parts.join(edit.replace);
  }
  return text === code ? null : text;
}

export const readSource = (file) => readFile(join(REPO, file), "utf8");
