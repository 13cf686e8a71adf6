/**
 * Which user PostgreSQL runs as, and all that follows from it. It refuses root, so root starts it under an unprivileged uid:
 * the owner of the data if there is any, else `nobody`; no account is made. Any other user runs it as itself.
 */
import { execFile } from "node:child_process";
import { chown, readdir, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { codeOf, embeddedFailed, unless } from "./failure.ts";

/** Spread into the options of a new process; empty when PostgreSQL runs as the user we are. */
export interface ServerUser {
  readonly uid?: number;
  readonly gid?: number;
}

const NOBODY = 65_534;
/** All that its programs get: PGPORT, PGOPTIONS or a locale of ours must not change what initdb and postgres do. */
export const SERVER_ENV: NodeJS.ProcessEnv = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

export async function chooseServerUser(pgdata: string): Promise<ServerUser> {
  // An empty folder is no data yet: its owner does not matter, it will be replaced.
  const empty = (await unless(["ENOENT", "EACCES"], readdir(pgdata)))?.length === 0;
  const data = empty ? undefined : await unless(["ENOENT"], stat(pgdata));
  if (!isRoot()) {
    const uid = process.geteuid?.();
    if (data && data.uid !== uid) {
      throw embeddedFailed(
        `The data in ${pgdata} belongs to uid ${data.uid}, and this process runs as uid ${uid}. ` +
          `Run as the owner, or set MAKEGOOD_DATA_DIR to a directory of this user.`,
        { pgdata, owner: data.uid, uid },
      );
    }
    return {};
  }
  const nobody = await findNobody();
  if (data?.uid === 0) {
    throw embeddedFailed(
      `The data in ${pgdata} belongs to root, and PostgreSQL refuses to run as root. ` +
        `Give it to the user the server runs as: chown -R ${nobody.uid}:${nobody.gid} ${pgdata}`,
      { pgdata },
    );
  }
  return data ? { uid: data.uid, gid: data.gid } : nobody;
}

async function findNobody(): Promise<Required<ServerUser>> {
  const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
  const [, , uid, gid] = /^nobody:.*$/m.exec(passwd)?.[0].split(":") ?? [];
  // A passwd that makes nobody root, or holds no number, is not believed.
  return { uid: Number(uid) || NOBODY, gid: Number(gid) || NOBODY };
}

/** root made it, the server's user works in it. */
export async function giveTo(user: ServerUser, ...paths: string[]): Promise<void> {
  for (const path of paths) if (user.uid !== undefined) await chown(path, user.uid, user.gid ?? user.uid);
}

/** As root: refuses a directory that the server's user cannot enter. */
export async function refuseUnreachable(path: string, user: ServerUser): Promise<void> {
  if (user.uid === undefined) return;
  const steps: string[] = [path];
  while (dirname(steps[0]!) !== steps[0]) steps.unshift(dirname(steps[0]!));
  // Really tried, under that uid: mode bits alone know nothing of access lists and mounts.
  const script = 'for step; do cd "$step" 2>/dev/null || { printf %s "$step"; exit 1; }; done';
  const tried = await runAs(user, "/bin/sh", ["-c", script, "sh", ...steps]).catch((error: unknown) => {
    throw embeddedFailed(
      `PostgreSQL refuses to run as root, and a program could not be started as uid ${user.uid}: ${codeOf(error) ?? error}. ` +
        `Run this process as a normal user, or set DATABASE_URL to a PostgreSQL server of your own.`,
      { uid: user.uid },
      error,
    );
  });
  if (tried.ended === 0) return;
  const blocked = tried.output;
  throw embeddedFailed(
    `PostgreSQL refuses to run as root, so it runs as uid ${user.uid}; that user cannot enter ${blocked}, on the way to the data ` +
      `directory ${path}. Set MAKEGOOD_DATA_DIR to a directory it can reach (for example /var/lib/makegood), or run: chmod o+x ${blocked}`,
    { dataDir: path, blocked, uid: user.uid },
  );
}

export interface Finished {
  /** Its exit code, or the signal that ended it. */
  readonly ended: number | string;
  readonly output: string;
}

/**
 * Runs one short program to its end. Rejects when it cannot be started at all (ENOENT, EACCES, EPERM); anything it says
 * itself is in the result.
 */
export function runAs(
  user: ServerUser,
  command: string,
  args: readonly string[],
  { cwd = "/", input = "" }: { readonly cwd?: string; readonly input?: string } = {},
): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { ...user, cwd, env: SERVER_ENV }, (error, stdout, stderr) => {
      if (typeof error?.code === "string") reject(error);
      else resolve({ ended: error?.signal ?? error?.code ?? 0, output: stdout + stderr });
    });
    // A program that ends without reading its input must not end us.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
  });
}
