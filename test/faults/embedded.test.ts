/**
 * Fault 44 and the life of a shared embedded server: several processes on one directory, at the same moment or one after the
 * other, stale files of every kind, a port that is taken. One directory has one server, and the last one to leave stops it.
 */
import { spawn } from "node:child_process";
import { appendFile, chown, mkdir, readdir, readFile, stat, unlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { here } from "../../src/platform/process-identity.ts";
import { openDirectory } from "../../src/store/postgres/embedded/data-directory.ts";
import { withLock } from "../../src/store/postgres/embedded/presence.ts";
import { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from "../../src/store/postgres/embedded.ts";
import {
  asRoot,
  dataFolder,
  endAll,
  NOBODY,
  postmasterOf,
  preparedFolder,
  query,
  runs,
  startChild,
  until,
} from "../support/embedded-child.ts";

const CHURNS = process.env.MAKEGOOD_SOAK === "1" ? 12 : 4;
vi.setConfig({ testTimeout: 90_000 });
const open: EmbeddedServer[] = [];
const cleanups: (() => void)[] = [];
async function start(dataDir: string, more: Partial<EmbeddedOptions> = {}): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, ...more });
  open.push(server);
  return server;
}

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) cleanup();
  await Promise.all(open.splice(0).map((server) => server.close().catch(() => undefined)));
  await endAll();
});

async function occupy(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  cleanups.push(() => server.close());
}

const startsIn = async (dataDir: string): Promise<number> =>
  (await readFile(join(dataDir, "postgres.log"), "utf8")).match(/database system is ready/g)?.length ?? 0;

describe("the server itself", () => {
  it("writes with full durability, listens on 127.0.0.1 only, and wants the password", async () => {
    const dataDir = join(await dataFolder(), "data");
    const server = await start(dataDir);
    const wanted = {
      fsync: "on",
      synchronous_commit: "on",
      full_page_writes: "on",
      data_checksums: "on",
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      server_encoding: "UTF8",
      TimeZone: "UTC",
      lc_messages: "C",
      max_connections: "200",
      shared_buffers: "128MB",
    };
    const names = Object.keys(wanted);
    const rows = await query(server.url, "select name, current_setting(name) as value from unnest($1::text[]) name", [names]);
    expect(Object.fromEntries(rows.map((row) => [row.name, row.value]))).toEqual(wanted);
    expect(
      await query(server.url, "select current_user as role, current_database() as name, datcollate from pg_database limit 1"),
    ).toEqual([{ role: "makegood", name: "makegood", datcollate: "C" }]);
    expect((await stat(join(dataDir, "password"))).mode & 0o777).toBe(0o600);
    expect((await stat(join(dataDir, "pgdata"))).mode & 0o777).toBe(0o700);
    await expect(query(server.url.replace(/:[0-9a-f]+@/, ":wrong@"), "select 1")).rejects.toMatchObject({ code: "28P01" });
  });

  it("N23: a directory of the version before gets its connections at the next start; what an operator set stays", async () => {
    const dataDir = await preparedFolder();
    const conf = join(dataDir, "pgdata", "postgresql.conf");
    for (const [written, found] of [
      ["100", "200"],
      ["40", "40"],
    ]) {
      await appendFile(conf, `\nmax_connections = ${written}\n`);
      const server = await start(dataDir);
      expect(await query(server.url, "show max_connections")).toEqual([{ max_connections: found }]);
      await server.close();
    }
  });

  it("is stopped by the last one attached, and comes back on the same port with its data", async () => {
    const dataDir = await preparedFolder();
    const first = await start(dataDir);
    await query(first.url, "create table kept as select 7 as seven");
    const child = await startChild({ mode: "hold", dataDir });
    await child.fact("ready");
    await first.close();
    await first.close();
    expect(await runs(first.pid)).toBe(true);
    await child.close();
    expect(await runs(first.pid)).toBe(false);
    expect(await readdir(join(dataDir, "attached"))).toEqual([]);

    const again = await start(dataDir);
    expect(again).toMatchObject({ attached: false, url: first.url });
    expect(await query(again.url, "select seven from kept")).toEqual([{ seven: 7 }]);
  });

  it("does not get the Ctrl-C that is meant for us, and does not count a killed process as attached", async () => {
    const dataDir = await preparedFolder();
    const killed = await startChild({ mode: "hold", dataDir });
    await killed.fact("ready");
    const child = await startChild({ mode: "hold", dataDir });
    const { pid } = await child.fact("ready");
    process.kill(-child.process.pid!, "SIGINT");
    await child.fact("interrupted");
    await sleep(300);
    expect(await postmasterOf(dataDir)).toBe(pid);
    await killed.kill();
    await child.close();
    expect(await runs(pid as number)).toBe(false);
  });

  it("keeps its log bounded, and sets a new password when the file was lost", async () => {
    const dataDir = await preparedFolder();
    const first = await start(dataDir);
    await query(first.url, "create table kept as select 7 as seven");
    await unlink(join(dataDir, "password"));
    await expect(start(dataDir)).rejects.toMatchObject({
      code: "embedded_failed",
      message: expect.stringContaining("kill -INT"),
    });
    await first.close();
    await writeFile(join(dataDir, "postgres.log"), "x".repeat(11 * 1024 * 1024));
    const again = await start(dataDir);
    expect((await stat(join(dataDir, "postgres.log"))).size).toBeLessThan(100_000);
    expect((await stat(join(dataDir, "postgres.log.1"))).size).toBeGreaterThan(10_000_000);
    expect(again.url).not.toBe(first.url);
    expect(await query(again.url, "select seven from kept")).toEqual([{ seven: 7 }]);
  });
});

describe("fault 44: a second process", () => {
  it("fault 44: attaches to the same server", async () => {
    const dataDir = await preparedFolder();
    const server = await start(dataDir);
    const child = await startChild({ mode: "hold", dataDir });
    const { pid, port, url } = server;
    expect(server.attached).toBe(false);
    expect(await child.fact("ready")).toMatchObject({ attached: true, pid, port, url });
  });

  it("fault 44: five at the same moment make one server, and leaving at the same moment stop it", async () => {
    const dataDir = await dataFolder();
    const children = await Promise.all([0, 1, 2, 3, 4].map(() => startChild({ mode: "hold", dataDir })));
    const ready = await Promise.all(children.map((child) => child.fact("ready")));
    expect(new Set(ready.map((fact) => fact.url)).size).toBe(1);
    expect(new Set(ready.map((fact) => fact.pid)).size).toBe(1);
    expect(ready.filter((fact) => !fact.attached)).toHaveLength(1);
    expect(await startsIn(dataDir)).toBe(1);
    await Promise.all(children.map((child) => child.close()));
    expect(await runs(ready[0]!.pid as number)).toBe(false);
  });

  it("fault 44: one that attaches while the last one leaves always gets a server that serves", async () => {
    const dataDir = await preparedFolder();
    const children = await Promise.all([0, 1, 2].map(() => startChild({ mode: "churn", dataDir, times: CHURNS })));
    await Promise.all(children.map((child) => child.fact("done")));
    await Promise.all(children.map((child) => child.ended));
    expect(await postmasterOf(dataDir)).toBeUndefined();
  });

  it.runIf(asRoot)(
    "fault 44: one in another container is refused while it lives, and taken over after it was killed",
    async () => {
      const dataDir = await preparedFolder();
      // A pid namespace of its own, as a container has: its pids mean nothing here.
      const container = await startChild({
        mode: "write",
        dataDir,
        prefix: ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"],
      });
      await container.fact("acked");
      await expect(start(dataDir, { signal: AbortSignal.timeout(3_000) })).rejects.toMatchObject({
        code: "embedded_failed",
        message: expect.stringContaining("another container"),
      });
      const before = container.facts.length;
      await until("it writes on, undisturbed", () => container.facts.length > before + 5);
      await container.kill();
      const server = await start(dataDir);
      expect(server.attached).toBe(false);
      const rows = await query(server.url, "select id from written");
      expect(rows.length).toBeGreaterThanOrEqual(container.facts.filter((fact) => fact.type === "acked").length);
    },
  );
});

describe("fault 44: stale files", () => {
  /** What a killed server leaves, with another pid in it. */
  async function leavePidFile(dataDir: string, pid: number | ""): Promise<void> {
    const server = await start(dataDir);
    const path = join(dataDir, "pgdata", "postmaster.pid");
    const [, ...rest] = (await readFile(path, "utf8")).split("\n");
    await server.close();
    const { uid, gid } = await stat(join(dataDir, "pgdata"));
    await writeFile(path, pid === "" ? "" : [pid, ...rest].join("\n"), { mode: 0o600 });
    await chown(path, uid, gid);
  }

  it("fault 44: a pid file whose process is gone is taken over", async () => {
    const dataDir = await preparedFolder();
    const gone = spawn("true");
    await new Promise((resolve) => gone.on("close", resolve));
    await leavePidFile(dataDir, gone.pid!);
    expect(await start(dataDir)).toMatchObject({ attached: false });
  });

  it("fault 44: a pid file whose pid is another program now is taken over, and that program lives on", async () => {
    const dataDir = await preparedFolder();
    // The server's own user: PostgreSQL by itself would take this process for a running server and refuse.
    const other = spawn("sleep", ["60"], asRoot ? { uid: NOBODY, gid: NOBODY } : {});
    cleanups.push(() => other.kill());
    await leavePidFile(dataDir, other.pid!);
    const lines: string[] = [];
    const server = await start(dataDir, { log: (line) => lines.push(line) });
    expect(server.attached).toBe(false);
    expect(lines.join("\n")).toContain("another program");
    expect(await runs(other.pid!)).toBe(true);
    expect(await postmasterOf(dataDir)).toBe(server.pid);
  });

  it("fault 44: an empty pid file is removed", async () => {
    const dataDir = await preparedFolder();
    await leavePidFile(dataDir, "");
    expect(await start(dataDir)).toMatchObject({ attached: false });
  });

  it("fault 44: a lock whose pid was used again is taken over", async () => {
    const dataDir = await preparedFolder();
    await mkdir(join(dataDir, "lock"));
    await writeFile(join(dataDir, "lock", `${process.pid}-1-${await here()}`), "");
    const lines: string[] = [];
    await start(dataDir, { log: (line) => lines.push(line) });
    expect(lines.join("\n")).toContain("took over the lock");
  });
});

describe("fault 44: the port is taken", () => {
  it("fault 44: another port is chosen at the start", async () => {
    const dataDir = await preparedFolder();
    const first = await start(dataDir);
    await first.close();
    await occupy(first.port);
    const again = await start(dataDir);
    expect(again.port).not.toBe(first.port);
    expect(await query(again.url, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("fault 44: taken while the server was dead, the new URL is told", async () => {
    const dataDir = await preparedFolder();
    const child = await startChild({ mode: "hold", dataDir });
    await child.fact("ready");
    const urls: string[] = [];
    const server = await start(dataDir, { onUrlChange: (url) => urls.push(url) });
    const { pid, port } = server;
    await child.kill(); // the parent of the server would notice its death at once
    // Under the lock, so that the server cannot be back before its port is taken.
    const directory = await openDirectory(dataDir, systemClock, () => undefined);
    await withLock(directory, async () => {
      process.kill(pid, "SIGKILL");
      await until("the server is dead", async () => !(await runs(pid)));
      await occupy(port);
    });
    await until("the server is back", () => server.pid !== pid);
    expect(server.port).not.toBe(port);
    expect(urls).toEqual([server.url]);
    expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
  });
});
