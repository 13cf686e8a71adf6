/**
 * Finds PgBouncer on this machine, or installs it with apt-get where we are root; otherwise one line says what to install.
 */
import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const MISSING =
  "PgBouncer is missing, and the pooler tests need it: install it (Debian, Ubuntu: apt-get install pgbouncer; macOS: brew install pgbouncer)";

/** The program's path. */
export async function findPgBouncer() {
  const found = await onThisMachine();
  if (found) return found;
  if (process.geteuid?.() !== 0) throw new Error(MISSING);
  await install();
  const installed = await onThisMachine();
  if (!installed) throw new Error(MISSING);
  return installed;
}

/** Where Debian puts it is not on every PATH. */
async function onThisMachine() {
  for (const folder of [...(process.env.PATH ?? "").split(":"), "/usr/sbin", "/usr/local/sbin"]) {
    const path = join(folder, "pgbouncer");
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (folder !== "" && usable) return path;
  }
  return undefined;
}

async function install() {
  const run = promisify(execFile);
  // RUNLEVEL=1 keeps the package from starting a service of its own.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const once = () => run("apt-get", ["install", "-y", "--no-install-recommends", "pgbouncer"], { env });
  try {
    await once().catch(async () => {
      await run("apt-get", ["update"], { env });
      await once();
    });
  } catch (error) {
    throw new Error(`${MISSING}. apt-get could not: ${(error.stderr?.trim() || error.message).split("\n").at(-1)}`);
  }
}
