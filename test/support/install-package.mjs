/**
 * Installs a test package that lives apart from the product (its lock file decides, its install scripts never run), unless it
 * is installed already.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export async function installPackage(folder) {
  const lock = createHash("sha256")
    .update(readFileSync(join(folder, "package-lock.json")))
    .digest("hex");
  const mark = join(folder, "node_modules", ".makegood-lock");
  if (existsSync(mark) && readFileSync(mark, "utf8") === lock) return;
  console.log(`installing ${folder} (npm ci --ignore-scripts)`);
  const npm = spawn("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: folder,
    stdio: "inherit",
  });
  const [status] = await once(npm, "close");
  if (status !== 0) throw new Error(`npm ci failed in ${folder}: it needs npm and the npm registry (or a filled npm cache)`);
  writeFileSync(mark, lock);
}
