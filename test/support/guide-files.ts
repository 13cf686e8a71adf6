/**
 * The files that a document holds: blocks of JavaScript that say in their first line which file they are. Written into a folder in which the package's own
 * doors open, they run as they stand.
 */
import { mkdir, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { builtDist } from "./build.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

export async function filesIn(document: string): Promise<Map<string, string>> {
  const blocks = (await readFile(join(ROOT, document), "utf8")).matchAll(/^```js\n(\/\/ ([\w.-]+\.mjs)\n[\s\S]*?)^```/gm);
  return new Map([...blocks].map((match) => [match[2] as string, match[1] as string]));
}

/** `packages`: name → where it is, beside makegood itself. The caller removes the folder. */
export async function guideFolder(document: string, packages: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "makegood-guide-"));
  await mkdir(join(folder, "node_modules"));
  await symlink(dirname(await builtDist()), join(folder, "node_modules/makegood"));
  for (const [name, path] of Object.entries(packages)) {
    await mkdir(dirname(join(folder, "node_modules", name)), { recursive: true });
    await symlink(path, join(folder, "node_modules", name));
  }
  for (const [name, text] of await filesIn(document)) await writeFile(join(folder, name), text);
  return folder;
}
