/**
 * A copy of the embedded server's data while it serves, and back: PostgreSQL is told that a copy begins and ends, its files are copied meanwhile,
 * and with them the log that makes them whole. The copy has its name only when everything is on the disk; it is put back into an empty place only,
 * after every file was compared with the hash that was taken of it.
 */
import { chmod, chown, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import pg from "pg";
import type { Clock } from "../../../platform/clock.ts";
import { syncFolder } from "../../../platform/sync-folder.ts";
import { locateNative, usableBinaries } from "./binaries.ts";
import { type CopiedFile, copyFile, hashFile, listTree, makeFolders, syncFolders } from "./copy-tree.ts";
import { type DataDirectory, nonce, openDirectory } from "./data-directory.ts";
import { embeddedFailed, unless } from "./failure.ts";
import { withLock } from "./presence.ts";

const MANIFEST = "manifest.json";
const FORMAT = 1;

export interface BackupManifest {
  readonly makegood_backup: typeof FORMAT;
  readonly made_at: string;
  readonly postgres_major: number;
  readonly from_lsn: string;
  readonly to_lsn: string;
  readonly folders: readonly string[];
  readonly files: readonly CopiedFile[];
  /** What the caller wants to compare after a restore. */
  readonly proof: unknown;
}

export interface BackupOptions {
  /** Of the server that runs on the directory. */
  readonly url: string;
  readonly dataDir: string;
  readonly target: string;
  readonly clock: Clock;
  readonly proof: unknown;
  readonly progress?: ((files: number) => void) | undefined;
}

/** Made anew by each start, or of this server alone. */
const EMPTY = /^(pg_wal|pg_replslot|pg_dynshmem|pg_notify|pg_serial|pg_snapshots|pg_stat_tmp|pg_subtrans)\//;
const LEFT_OUT =
  /^(postmaster\.(pid|opts)|backup_label(\.old)?|tablespace_map(\.old)?)$|(^|\/)(pgsql_tmp[^/]*|pg_internal\.init[^/]*)$/;
const CONTROL = "global/pg_control";
const SEGMENT = /^[0-9A-F]{24}$/;

export async function backupEmbedded(options: BackupOptions): Promise<BackupManifest> {
  const { url, clock, proof, progress } = options;
  const pgdata = join(resolve(options.dataDir), "pgdata");
  const target = resolve(options.target);
  if (((await unless(["ENOENT"], readdir(target)))?.length ?? 0) > 0) {
    throw embeddedFailed(`${target} is not empty: a backup needs a place of its own.`, { target });
  }
  const part = `${target}.part-${nonce()}`;
  const client = new pg.Client({ connectionString: url, application_name: "makegood backup" });
  client.on("error", () => undefined); // told by the next statement
  await client.connect();
  const ask = async (text: string): Promise<string> => String(Object.values((await client.query(text)).rows[0] as object)[0]);
  try {
    await mkdir(join(part, "pgdata"), { recursive: true, mode: 0o700 });
    // Nothing of the log goes while this session lives; it goes with it, whatever happens.
    await ask(`select pg_create_physical_replication_slot('makegood_backup_${nonce()}', true, true)`);
    const fromLsn = await ask("select pg_backup_start('makegood', true)");
    const { folders, files } = await listTree(pgdata, (path) => EMPTY.test(path) || LEFT_OUT.test(path));
    if (files.some((path) => path.startsWith("pg_tblspc/"))) throw embeddedFailed("Data with tablespaces cannot be copied here.");
    await makeFolders(join(part, "pgdata"), folders);
    const copied: CopiedFile[] = [];
    const copy = async (path: string) => {
      const one = await copyFile(pgdata, join(part, "pgdata"), path);
      if (one) copied.push(one);
      progress?.(copied.length);
    };
    for (const path of files) if (path !== CONTROL) await copy(path);
    await copy(CONTROL);
    const stop = await client.query("select lsn::text, labelfile from pg_backup_stop(false)");
    const { lsn: toLsn, labelfile } = stop.rows[0] as { lsn: string; labelfile: string };
    await writeFile(join(part, "pgdata", "backup_label"), labelfile, { mode: 0o600, flush: true });
    copied.push({ path: "backup_label", ...(await hashFile(join(part, "pgdata", "backup_label"))) });
    for (const segment of await segments(pgdata, ask, fromLsn, toLsn)) await copy(`pg_wal/${segment}`);
    await syncFolders(join(part, "pgdata"), folders);
    const major = Math.floor(Number(await ask("select current_setting('server_version_num')")) / 10_000);
    const madeAt = new Date(clock.wallMs()).toISOString();
    const manifest = {
      makegood_backup: FORMAT,
      made_at: madeAt,
      postgres_major: major,
      from_lsn: fromLsn,
      to_lsn: toLsn,
      folders,
      files: copied,
      proof,
    } as const;
    await writeFile(join(part, MANIFEST), `${JSON.stringify(manifest)}\n`, { mode: 0o600, flush: true });
    await syncFolder(part);
    await rename(part, target);
    await syncFolder(dirname(target));
    return manifest;
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw isFull(error)
      ? embeddedFailed(`${target}: the disk is full, so there is no backup. Nothing is left of it.`, { target })
      : error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const isFull = (error: unknown): boolean => ["ENOSPC", "EDQUOT"].includes(String((error as NodeJS.ErrnoException).code));

/** The files of the log from the first to the last that the copy needs; all of them must be there. */
async function segments(pgdata: string, ask: (text: string) => Promise<string>, from: string, to: string): Promise<string[]> {
  const size = Number(await ask("select (pg_size_bytes(current_setting('wal_segment_size')))::text"));
  const [first, last] = [
    await ask(`select pg_walfile_name('${from}')`),
    await ask(`select pg_walfile_name('${to}'::pg_lsn - 1)`),
  ];
  const number = (name: string) =>
    Number.parseInt(name.slice(8, 16), 16) * (4_294_967_296 / size) + Number.parseInt(name.slice(16), 16);
  const found = (await readdir(join(pgdata, "pg_wal"))).filter((name) => SEGMENT.test(name) && name >= first && name <= last);
  const wanted = number(last) - number(first) + 1;
  if (found.length === wanted) return found.sort();
  throw embeddedFailed(`The copy needs ${wanted} files of the log from ${first} to ${last}, and ${found.length} are there.`, {
    first,
    last,
  });
}

export interface RestoreOptions {
  readonly source: string;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly nativeDir?: string | undefined;
  readonly progress?: ((files: number) => void) | undefined;
}

/** Reads and compares everything; changes nothing. */
export async function checkBackup(given: string, progress?: (files: number) => void): Promise<BackupManifest> {
  const source = resolve(given);
  const text = await unless(["ENOENT", "ENOTDIR"], readFile(join(source, MANIFEST), "utf8"));
  if (text === undefined) throw damaged(source, `it has no ${MANIFEST}`);
  const manifest = parse(source, text);
  const there = await listTree(join(source, "pgdata"));
  const listed = new Set(manifest.files.map(({ path }) => path));
  const extra = there.files.find((path) => !listed.has(path));
  if (extra !== undefined) throw damaged(source, `${extra} is not in its list`);
  for (const [i, { path, bytes, sha256 }] of manifest.files.entries()) {
    const found = await unless(["ENOENT"], hashFile(join(source, "pgdata", path)));
    if (!found) throw damaged(source, `${path} is missing`);
    if (found.bytes !== bytes || found.sha256 !== sha256) throw damaged(source, `${path} was changed`);
    progress?.(i + 1);
  }
  return manifest;
}

function parse(source: string, text: string): BackupManifest {
  try {
    const manifest = JSON.parse(text) as BackupManifest;
    if (manifest.makegood_backup === FORMAT && Array.isArray(manifest.files)) return manifest;
  } catch {
    // Said below.
  }
  throw damaged(source, `its ${MANIFEST} cannot be read by this version`);
}

const damaged = (source: string, why: string) =>
  embeddedFailed(`${source} is not a whole backup: ${why}. Nothing was restored.`, { source });

export async function restoreEmbedded(options: RestoreOptions): Promise<BackupManifest> {
  const { source, clock, progress } = options;
  const manifest = await checkBackup(source);
  await refuseUsed(options.dataDir);
  const directory = await openDirectory(options.dataDir, clock, () => undefined);
  const { major } = await usableBinaries(options.nativeDir ?? locateNative(), directory);
  if (manifest.postgres_major !== major) {
    const text = `The backup is of PostgreSQL ${manifest.postgres_major}; this version of Makegood brings PostgreSQL ${major}, which cannot read it.`;
    throw embeddedFailed(text, { source });
  }
  await withLock(directory, async () => {
    await refuseUsed(options.dataDir);
    await putBack(manifest, resolve(source), directory, progress);
  });
  return manifest;
}

/** A data directory that was never used, or is not there. */
async function refuseUsed(dataDir: string): Promise<void> {
  const entries = (await unless(["ENOENT"], readdir(resolve(dataDir)))) ?? [];
  const used = entries.find((name) => !/^(lock|lock\.new-.*|attached|binaries.*|pgdata\.new-.*)$/.test(name));
  if (used === undefined) return;
  throw embeddedFailed(`${resolve(dataDir)} is not empty (${used}): a backup is restored into an empty MAKEGOOD_DATA_DIR only.`, {
    dataDir,
  });
}

async function putBack(
  manifest: BackupManifest,
  source: string,
  directory: DataDirectory,
  progress?: (files: number) => void,
): Promise<void> {
  const fresh = join(directory.path, `pgdata.new-${process.pid}-${nonce()}`);
  const { uid, gid } = directory.user;
  const give = async (path: string) => {
    if (uid !== undefined) await chown(path, uid, gid ?? uid);
  };
  try {
    await mkdir(fresh, { mode: 0o700 });
    await chmod(fresh, 0o700);
    await makeFolders(fresh, manifest.folders);
    for (const path of ["", ...manifest.folders]) await give(join(fresh, path));
    for (const [i, { path, bytes, sha256 }] of manifest.files.entries()) {
      const one = await copyFile(join(source, "pgdata"), fresh, path);
      if (one?.bytes !== bytes || one.sha256 !== sha256) throw damaged(basename(source), `${path} was changed`);
      await give(join(fresh, path));
      progress?.(i + 1);
    }
    await syncFolders(fresh, manifest.folders);
    await rename(fresh, directory.pgdata);
    await syncFolder(directory.path);
  } catch (error) {
    await rm(fresh, { recursive: true, force: true });
    throw error;
  }
}
