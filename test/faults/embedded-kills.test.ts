/**
 * Fault 43: the embedded server with real SIGKILLs, of our process, of the postmaster, and in the middle of initdb. What was
 * acknowledged must be there afterwards, and nobody has to repair anything by hand. MAKEGOOD_SOAK=1 kills more often.
 */
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type EmbeddedServer, startEmbedded } from "../../src/store/postgres/embedded.ts";
import { dataFolder, endAll, postmasterOf, preparedFolder, query, runs, startChild, until } from "../support/embedded-child.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const WRITING = soak ? 25 : 6;
const STARTING = soak ? 12 : 6;
const MAKING = soak ? [0.05, 0.2, 0.4, 0.6, 0.8, 0.95] : [0.05, 0.4, 0.8];
vi.setConfig({ testTimeout: 180_000 });
const open: EmbeddedServer[] = [];
async function start(dataDir: string, more: { log?: (line: string) => void } = {}): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, ...more });
  open.push(server);
  return server;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close().catch(() => undefined)));
  await endAll();
});

async function expectAll(url: string, acked: readonly string[]): Promise<void> {
  const present = new Set((await query(url, "select id from written")).map((row) => row.id));
  expect(acked.filter((id) => !present.has(id))).toEqual([]);
}

describe("fault 43: SIGKILL of our process", () => {
  it(`fault 43: killed ${WRITING} times while it writes, no acknowledged row is missing and the orphan is re-attached`, async () => {
    const dataDir = await preparedFolder();
    const acked: string[] = [];
    for (let round = 0; round < WRITING; round++) {
      const child = await startChild({ mode: "write", dataDir, round });
      const { pid } = await child.fact("ready");
      await child.fact("acked");
      await sleep(Math.random() * 150);
      // Every fifth time the server goes with it, as when a whole container is killed.
      const both = round % 5 === 4;
      await child.kill();
      // Second, because our process would bring it back.
      if (both) {
        process.kill(pid as number, "SIGKILL");
        await until("it is gone", async () => !(await runs(pid as number)));
      }
      acked.push(...child.facts.filter((fact) => fact.type === "acked").map((fact) => String(fact.id)));

      const server = await start(dataDir);
      expect({ round, attached: server.attached }).toEqual({ round, attached: !both });
      if (!both) expect(server.pid).toBe(pid);
      await expectAll(server.url, acked);
      await server.close();
      expect(await runs(server.pid)).toBe(false);
    }
    expect(acked.length).toBeGreaterThan(4 * WRITING);
  });

  it("fault 43: killed at any moment of its start, the next start gets the one server", async () => {
    const dataDir = await preparedFolder();
    // Between writing a file and giving it its name is a short moment: what a kill there leaves.
    for (const left of ["port.new-0123456789ab", "password.new-0123456789ab"]) await writeFile(join(dataDir, left), "half");
    for (let round = 0; round < STARTING; round++) {
      const child = await startChild({ mode: "hold", dataDir });
      await until("it takes the lock", async () => child.facts.length > 0 || (await readdir(dataDir)).includes("lock"));
      await sleep(Math.random() * 90);
      await child.kill();
      if (round % 3 < 2) continue; // also two killed in a row, without anybody tidying up between
      const server = await start(dataDir);
      expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
      expect(await postmasterOf(dataDir)).toBe(server.pid);
      await server.close();
      expect(await runs(server.pid)).toBe(false);
    }
    expect((await readdir(dataDir)).filter((name) => name.includes(".new-"))).toEqual([]);
  });
});

describe("fault 43: SIGKILL of the postmaster", () => {
  it("fault 43: it is started again by itself on the same port, with every acknowledged row", async () => {
    const dataDir = await preparedFolder();
    const server = await start(dataDir);
    const url = server.url;
    await query(url, "create table written (id text primary key)");
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    pool.on("error", () => undefined);
    const acked: string[] = [];
    const enough = new AbortController();
    const writers = [0, 1, 2, 3].map(async (writer) => {
      for (let n = 0; !enough.signal.aborted; n++) {
        const id = `${writer}-${n}`;
        try {
          await pool.query("insert into written values ($1)", [id]);
          acked.push(id);
        } catch {
          await sleep(20); // the server is away: this row was not acknowledged
        }
      }
    });
    for (let kills = 0; kills < 4; kills++) {
      const before = acked.length;
      await until("rows are written", () => acked.length > before + 20);
      const killed = server.pid;
      process.kill(killed, "SIGKILL");
      await until("the server is back", () => server.pid !== killed);
    }
    const before = acked.length;
    await until("rows are written after the last kill", () => acked.length > before + 20);
    enough.abort();
    await Promise.all(writers);
    await pool.end();
    expect(server.url).toBe(url);
    await expectAll(url, acked);
  });

  it("fault 43: killed while it starts, it is started again", async () => {
    const dataDir = await preparedFolder();
    const lines: string[] = [];
    const starting = start(dataDir, { log: (line) => lines.push(line) });
    await until("it starts", async () => (await postmasterOf(dataDir)) !== undefined);
    process.kill((await postmasterOf(dataDir))!, "SIGKILL");
    const server = await starting;
    await until("it was noticed", () => lines.some((line) => /killed while it started|is gone/.test(line)));
    await until("it serves", async () => (await query(server.url, "select 1").catch(() => [])).length === 1);
  });

  it("fault 43: a process of the dead server that computes on is ended, and the server comes back", async () => {
    const dataDir = await preparedFolder();
    const lines: string[] = [];
    const server = await start(dataDir, { log: (line) => lines.push(line) });
    // Never looks whether its postmaster lives, so it keeps the shared memory.
    const busy = query(server.url, "do $$ begin loop end loop; end $$").catch(() => undefined);
    await until("it computes", async () => {
      const rows = await query(server.url, "select 1 from pg_stat_activity where query like 'do $$%' and state = 'active'");
      return rows.length === 1;
    });
    const killed = server.pid;
    process.kill(killed, "SIGKILL");
    await until("the server is back", () => server.pid !== killed);
    expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
    expect(lines.join("\n")).toContain("of the dead server");
    await busy;
  });

  it("fault 43: of several attached processes one brings it back and all find it", async () => {
    const dataDir = await preparedFolder();
    const server = await start(dataDir);
    const others = await Promise.all([startChild({ mode: "hold", dataDir }), startChild({ mode: "hold", dataDir })]);
    for (const child of others) expect((await child.fact("ready")).attached).toBe(true);
    const killed = server.pid;
    process.kill(killed, "SIGKILL");
    await until("the server is back", () => server.pid !== killed);
    for (const child of others) expect(await child.fact("moved")).toMatchObject({ pid: server.pid });
    for (const child of others) {
      await child.close();
      expect(await child.fact("closing")).toMatchObject({ pid: server.pid, port: server.port });
    }
    expect(await postmasterOf(dataDir)).toBe(server.pid);
    const log = await readFile(join(dataDir, "postgres.log"), "utf8");
    expect(log.match(/database system is ready/g)).toHaveLength(2);
  });

  it("fault 43: a directory that vanished under a running process is not made anew", async () => {
    const dataDir = await preparedFolder();
    const lines: string[] = [];
    const server = await start(dataDir, { log: (line) => lines.push(line) });
    await rename(join(dataDir, "pgdata"), join(dataDir, "pgdata-away"));
    process.kill(server.pid, "SIGKILL");
    await until("it says so", () => lines.some((line) => line.includes("is gone. Put it back")));
    expect(await readdir(dataDir)).not.toContain("pgdata");
    const killed = server.pid;
    await rename(join(dataDir, "pgdata-away"), join(dataDir, "pgdata"));
    await until("the server is back", () => server.pid !== killed);
    expect(await query(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
  });
});

describe("fault 43: SIGKILL during initdb", () => {
  it("fault 43: a half-made directory is remade, whatever the moment", async () => {
    for (const [index, part] of MAKING.entries()) {
      const dataDir = await dataFolder();
      const child = await startChild({ mode: "hold", dataDir });
      await until("initdb is under way", async () => (await readdir(dataDir)).some((name) => name.startsWith("pgdata.new-")));
      await sleep(part * 900);
      // Only our process: then initdb works on without a parent. Or both, as a terminal or the OOM killer would.
      if (index % 2 === 0) await child.kill();
      else process.kill(-child.process.pid!, "SIGKILL");
      await child.ended;

      const server = await start(dataDir);
      expect(await query(server.url, "select current_database() as name")).toEqual([{ name: "makegood" }]);
      await server.close();
      const again = await start(dataDir);
      await again.close();
      expect((await readdir(dataDir)).filter((name) => name.includes(".new-"))).toEqual([]);
    }
  });
});
