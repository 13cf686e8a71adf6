/**
 * The few things that only C can do for a test (a clock that a process cannot tell from the real one, a file system that forgets), compiled once
 * and kept by what their source says.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findTool } from "./find-tool.mjs";

const SOURCES = fileURLToPath(new URL("./native/", import.meta.url));
/** Not below node_modules of a user's home: a server that runs as another user must reach it. */
const CACHE = "/tmp/makegood-test-native";

/** The path of what became of `native/<name>.c`. */
export async function compiled(name: string, flags: readonly string[]): Promise<string> {
  const source = join(SOURCES, `${name}.c`);
  const text = await readFile(source, "utf8");
  const state = createHash("sha256")
    .update(JSON.stringify([text, flags, process.getuid?.()]))
    .digest("hex")
    .slice(0, 16);
  const made = join(CACHE, `${name}-${state}`);
  if (await stat(made).catch(() => undefined)) return made;
  const need = "the tests of clocks and of power loss compile a little C";
  const compiler = await findTool({ files: ["gcc", "cc", "clang"], packages: ["gcc", "libc6-dev"], need });
  await mkdir(CACHE, { recursive: true, mode: 0o755 });
  const mine = `${made}.${process.pid}`;
  await promisify(execFile)(compiler, ["-O2", "-Wall", "-Werror", "-o", mine, source, ...flags]);
  await rename(mine, made);
  return made;
}
