/**
 * Finds and loads `makegood.config.(mjs|json|ts)`. What it says about settings and topics is judged elsewhere; here it
 * only has to be one file that can be read and that exports an object.
 */
import { readdir, readFile } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { errorText } from "../../message/errors.ts";

export type LoadedFile =
  | { readonly kind: "none" }
  | { readonly kind: "loaded"; readonly path: string; readonly value: unknown }
  | { readonly kind: "fault"; readonly fault: string };

const NAMES = ["makegood.config.mjs", "makegood.config.json", "makegood.config.ts"];

export async function loadConfigFile(cwd: string, asked: string | null): Promise<LoadedFile> {
  if (asked !== null) return load(resolve(cwd, asked));
  const present = new Set(await readdir(cwd).catch(() => []));
  const found = NAMES.filter((name) => present.has(name));
  const [first, ...more] = found;
  if (first === undefined) return { kind: "none" };
  if (more.length > 0) return { kind: "fault", fault: `there are several config files, keep one: ${found.join(", ")}` };
  return load(join(cwd, first));
}

async function load(path: string): Promise<LoadedFile> {
  try {
    switch (extname(path)) {
      case ".json":
        return { kind: "loaded", path, value: JSON.parse(await readFile(path, "utf8")) };
      case ".ts":
      case ".mts":
        if (!stripsTypes()) return { kind: "fault", fault: typesRemedy(path) };
        return { kind: "loaded", path, value: await importDefault(path) };
      case ".mjs":
      case ".js":
        return { kind: "loaded", path, value: await importDefault(path) };
      default:
        return { kind: "fault", fault: `config file ${path}: its name must end in .mjs, .json or .ts` };
    }
  } catch (error) {
    return { kind: "fault", fault: `config file ${path}: ${errorText(error)}` };
  }
}

async function importDefault(path: string): Promise<unknown> {
  const module: { default?: unknown } = await import(pathToFileURL(path).href);
  if (module.default === undefined) throw new Error("it has no default export");
  return module.default;
}

function stripsTypes(): boolean {
  return Boolean((process.features as { typescript?: unknown }).typescript);
}

function typesRemedy(path: string): string {
  const remedy = "rename it to makegood.config.mjs (and remove the types), or run Node 22.18 or later";
  return `config file ${path}: Node ${process.versions.node} does not run TypeScript; ${remedy}`;
}
