/**
 * Finds and loads `makegood.config.(mjs|json|ts)`. What it says about settings and topics is judged elsewhere; here it
 * only has to be one file that can be read and that exports an object.
 */
import { readdir, readFile } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { errorText } from "../../message/errors.ts";

const NAMES = ["makegood.config.mjs", "makegood.config.json", "makegood.config.ts"];

/** Undefined: there is none, or what is wrong with it is among the faults. */
export async function loadConfigFile(cwd: string, asked: string | undefined, faults: string[]) {
  const present: string[] = asked === undefined ? await readdir(cwd).catch(() => []) : [asked];
  const [name, ...more] = asked === undefined ? NAMES.filter((one) => present.includes(one)) : present;
  if (more.length > 0) faults.push(`there are several config files, keep one: ${[name, ...more].join(", ")}`);
  if (name === undefined || more.length > 0) return undefined;
  const path = resolve(cwd, name);
  try {
    return { path, value: await load(path) };
  } catch (error) {
    faults.push(`config file ${path}: ${errorText(error)}`);
    return undefined;
  }
}

async function load(path: string): Promise<unknown> {
  const kind = extname(path);
  if (kind === ".json") return JSON.parse(await readFile(path, "utf8"));
  if (![".mjs", ".js", ".ts", ".mts"].includes(kind)) throw new Error("its name must end in .mjs, .json or .ts");
  if (kind.endsWith("ts") && !(process.features as { typescript?: unknown }).typescript) {
    const remedy = "rename it to makegood.config.mjs (and remove the types), or run Node 22.18 or later";
    throw new Error(`Node ${process.versions.node} does not run TypeScript; ${remedy}`);
  }
  const module: { default?: unknown } = await import(pathToFileURL(path).href);
  if (module.default === undefined) throw new Error("it has no default export");
  return module.default;
}
