/** The version of this package, as its package.json says. */
import { createRequire } from "node:module";

export const VERSION = (createRequire(import.meta.url)("../../package.json") as { version: string }).version;
