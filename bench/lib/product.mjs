// The product's doors, from a build: BENCH_DIST names another one, to compare two. Imported when first used, so that the peers can be
// measured while there is no build.
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const distPath = pathToFileURL(
  `${resolve(process.env.BENCH_DIST ?? fileURLToPath(new URL("../../dist", import.meta.url)))}/`,
);

export const doors = {
  main: () => import(new URL("index.js", distPath)),
  postgres: () => import(new URL("store/postgres/index.js", distPath)),
  redis: () => import(new URL("store/redis/index.js", distPath)),
  presets: () => import(new URL("presets/index.js", distPath)),
};
