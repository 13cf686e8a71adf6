/**
 * Who uses a journal's directory: each Journal has a name of its own, segments that carry it, and a presence file that it touches. A name
 * whose presence file is missing or was not touched for a while, or says a process that has ended here, is gone, and its segments may be taken
 * over; a mistake in that is safe, because a live owner notices that its file lost its name.
 */
import { readdir, readFile, rename, stat, unlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "../../platform/make-folder.ts";
import { here, identityName, isRunning, myIdentity, parseIdentity } from "../../platform/process-identity.ts";
import type { KnownStore } from "../journal.ts";

const SEGMENT = /^([0-9]+-[0-9a-f]{12})-([0-9]{6})\.journal$/;
const KNOWN = "known-store.json";

export interface Listed {
  readonly path: string;
  readonly owner: string;
  readonly number: number;
  readonly bytes: number;
}

export const segmentPath = (directory: string, owner: string, number: number): string =>
  join(directory, `${owner}-${String(number).padStart(6, "0")}.journal`);

const presencePath = (directory: string, owner: string): string => join(directory, `${owner}.owner`);

export async function makeDirectory(directory: string): Promise<void> {
  await makeFolder(directory, 0o700);
}

/** Every segment, in the order in which its owner wrote it. */
export async function listSegments(directory: string): Promise<Listed[]> {
  const listed: Listed[] = [];
  for (const name of (await readdir(directory)).sort()) {
    const match = SEGMENT.exec(name);
    if (!match) continue;
    const path = join(directory, name);
    const found = await stat(path).catch(() => null);
    if (found) listed.push({ path, owner: match[1] as string, number: Number(match[2]), bytes: found.size });
  }
  return listed;
}

export async function touch(directory: string, owner: string, nowMs: number): Promise<void> {
  const path = presencePath(directory, owner);
  const seconds = nowMs / 1_000;
  await utimes(path, seconds, seconds).catch(async () => {
    // Elsewhere only its age counts: asking about a process costs another one.
    const who = process.platform === "linux" ? identityName(await myIdentity()) : "";
    await writeFile(path, who, { mode: 0o600 });
  });
}

export async function leave(directory: string, owner: string): Promise<void> {
  await unlink(presencePath(directory, owner)).catch(() => {});
}

/**
 * Whether the process of that name has ended or gave no sign for `goneMs`: what a kill left goes before what comes next of its
 * keys.
 */
export async function isGone(directory: string, owner: string, nowMs: number, goneMs: number): Promise<boolean> {
  const path = presencePath(directory, owner);
  const found = await stat(path).catch(() => null);
  if (found === null || Math.abs(nowMs - found.mtimeMs) > goneMs) return true;
  const who = parseIdentity(await readFile(path, "utf8").catch(() => ""));
  return who !== undefined && who.place === (await here()) && !(await isRunning(who));
}

/** Only a hint, so it need not survive more than a crash of the process; a reader sees the old one or the new one. */
export async function writeKnown(directory: string, owner: string, known: KnownStore): Promise<void> {
  const fresh = join(directory, `${KNOWN}.${owner}`);
  await writeFile(fresh, JSON.stringify(known), { mode: 0o600 });
  await rename(fresh, join(directory, KNOWN));
}

export async function readKnown(directory: string): Promise<KnownStore | null> {
  try {
    const { name, unsettled, at } = JSON.parse(await readFile(join(directory, KNOWN), "utf8")) as Partial<KnownStore>;
    return typeof name === "string" && typeof unsettled === "number" ? { name, unsettled, at: String(at) } : null;
  } catch {
    return null;
  }
}
