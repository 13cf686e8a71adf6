// Where the built package is: `dist` of this checkout, or MAKEGOOD_DIST. In a service of your own these files are the doors
// `makegood`, `makegood/postgres` and `makegood/presets`.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const dist = process.env.MAKEGOOD_DIST ?? fileURLToPath(new URL("../dist", import.meta.url));

export function load(file) {
  const path = join(dist, file);
  if (!existsSync(path)) throw new Error(`${path} is missing: run \`npm run build\` first`);
  return import(pathToFileURL(path).href);
}
