/**
 * Finds what npm cannot bring on this machine (a program, a library, a header), or installs it with apt-get where we are root; otherwise one
 * line says what to install.
 */
import { execFile } from "node:child_process";
import { access } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

/** Where Debian puts programs is not on every PATH. */
const FOLDERS = [...(process.env.PATH ?? "").split(":"), "/usr/sbin", "/usr/local/sbin", "/usr/local/bin"].filter(Boolean);

/**
 * The first of these that is there: names of programs, or whole paths. `need`: who needs it, for the line that says that it is missing.
 * `packages`: Debian's; `remedy`: how to get it elsewhere.
 */
export async function findTool({ files, packages, need, remedy = "" }) {
  const found = await onThisMachine(files);
  if (found) return found;
  const debian = `Debian, Ubuntu: apt-get install ${packages.join(" ")}`;
  const missing = `${files[0]} is missing, and ${need}: install it (${debian}${remedy && `; ${remedy}`})`;
  if (process.geteuid?.() !== 0) throw new Error(missing);
  await install(packages).catch((error) => {
    throw new Error(`${missing}. apt-get could not: ${(error.stderr?.trim() || error.message).split("\n").at(-1)}`);
  });
  const installed = await onThisMachine(files);
  if (!installed) throw new Error(missing);
  return installed;
}

async function onThisMachine(files) {
  for (const file of files) {
    for (const path of isAbsolute(file) ? [file] : FOLDERS.map((folder) => join(folder, file))) {
      const there = await access(path).then(
        () => true,
        () => false,
      );
      if (there) return path;
    }
  }
  return undefined;
}

async function install(packages) {
  const run = promisify(execFile);
  // RUNLEVEL=1 keeps a package from starting a service of its own. Files of a run ask at the same moment: each waits for its turn.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const turn = ["-o", "DPkg::Lock::Timeout=120"];
  const apt = (...args) => inTurn(() => run("apt-get", [...args, ...turn], { env }));
  const once = () => apt("install", "-y", "--no-install-recommends", ...packages);
  await once().catch(async () => {
    await apt("update");
    await once();
  });
}

/** apt-get waits for the lock of packages when told to, but not for the one of its lists. */
async function inTurn(work) {
  for (let left = 60; ; left--) {
    try {
      return await work();
    } catch (error) {
      if (left === 0 || !/could not get lock|unable to lock/i.test(String(error.stderr))) throw error;
      await sleep(2_000);
    }
  }
}
