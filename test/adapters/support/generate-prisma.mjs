/**
 * Makes Prisma's client from schema.prisma, into node_modules. Prisma wants an engine that it would download and that this
 * client never uses: any program will do in its place, so this works without a network and without install scripts.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));

export function setup() {
  const cli = fileURLToPath(new URL("../node_modules/prisma/build/index.js", import.meta.url));
  const env = {
    ...process.env,
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    CHECKPOINT_DISABLE: "1",
    PRISMA_HIDE_UPDATE_MESSAGE: "1",
  };
  execFileSync(process.execPath, [cli, "generate", "--schema", "schema.prisma"], { cwd: here, env, stdio: "pipe" });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setup();
