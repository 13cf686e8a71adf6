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
  const fault = (words: string): LoadedFile => ({ kind: "fault", fault: `config file ${path}: ${words}` });
  const kind = extname(path);
  if (![".json", ".mjs", ".js", ".ts", ".mts"].includes(kind)) return fault("its name must end in .mjs, .json or .ts");
  if (kind.endsWith("ts") && !(process.features as { typescript?: unknown }).typescript) {
    const remedy = "rename it to makegood.config.mjs (and remove the types), or run Node 22.18 or later";
    return fault(`Node ${process.versions.node} does not run TypeScript; ${remedy}`);
  }
  try {
    if (kind === ".json") return { kind: "loaded", path, value: JSON.parse(await readFile(path, "utf8")) };
    const module: { default?: unknown } = await import(pathToFileURL(path).href);
    return module.default === undefined ? fault("it has no default export") : { kind: "loaded", path, value: module.default };
  } catch (error) {
    return fault(errorText(error));
  }
}
