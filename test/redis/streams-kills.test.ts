/** The inlet in processes of its own that die by SIGKILL at every step: nothing is lost, and one entry stays one message. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startableDist } from "../support/build.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { pause } from "../unit/delivery/support.ts";

const CHILD = join(import.meta.dirname, "inlet-child.mjs");
const NAMES = { stream: "orders", group: "workers", blockMs: 50, sweepMs: 30, reclaimIdleMs: 150, acceptTimeoutMs: 100 };

describe("inlets that are killed", () => {
  let server: RedisServer;
  let dist: string;
  const children = new Set<ChildProcess>();

  const start = (options: Record<string, unknown>): ChildProcess => {
    const args = [CHILD, JSON.stringify({ dist, url: server.url, ...NAMES, ...options })];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
    children.add(child);
    child.once("exit", () => children.delete(child));
    return child;
  };
  const length = async (stream = "orders"): Promise<number> => Number(await server.ask("XLEN", stream));
  const add = (body: string) => server.ask("XADD", "orders", "*", "body", body) as Promise<string>;

  beforeAll(async () => {
    dist = await startableDist();
    server = await startRedis();
  });
  beforeEach(async () => {
    await server.ask("FLUSHALL");
  });
  afterEach(async () => {
    const left = [...children];
    for (const child of left) child.kill("SIGKILL");
    await Promise.all(left.map((child) => (child.exitCode === null && child.signalCode === null ? once(child, "exit") : null)));
  });
  afterAll(() => server.stop());

  it("loses nothing at any point, and every entry becomes one message", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 60; n++) ids.push(await add(String(n)));
    const deaths = [
      ["before", 1],
      ["after", 1],
      ["settled", 1],
      ["before", 2],
      ["after", 2],
      ["settled", 2],
    ] as const;
    for (const [point, at] of deaths) {
      const child = start({ point, at, reclaimsMax: 100 });
      const [, signal] = (await once(child, "exit")) as [number | null, string | null];
      expect(signal).toBe("SIGKILL");
    }
    for (let i = 0; i < 2; i++) start({ reclaimsMax: 100 });
    for (let waited = 0; (await length()) > 0 && waited < 20_000; waited += 50) await pause(50);
    expect(await length()).toBe(0);
    expect(await server.ask("XPENDING", "orders", "workers")).toEqual([0, null, null, null]);
    const flat = (await server.ask("HGETALL", "accepted")) as string[];
    const accepted = Object.fromEntries(flat.flatMap((key, i) => (i % 2 === 0 ? [[key, flat[i + 1]]] : [])));
    expect(accepted).toEqual(Object.fromEntries(ids.map((id, n) => [`orders:${id}`, String(n)])));
    expect(await length("{orders}:dead-letter")).toBe(0);
  });

  it("an entry that kills its reader is quarantined alone; its neighbours are not charged for it", async () => {
    for (let n = 0; n < 4; n++) await add(String(n));
    const killer = await add("killer");
    for (let n = 4; n < 8; n++) await add(String(n));
    let deaths = 0;
    for (let waited = 0; (await length()) > 0 && waited < 25_000; waited += 20) {
      if (children.size === 0) {
        start({ killer: "killer", reclaimsMax: 2 }).once("exit", () => deaths++);
      }
      await pause(20);
    }
    expect(await length()).toBe(0);
    expect(Number(await server.ask("HLEN", "accepted"))).toBe(8);
    const [[, fields]] = (await server.ask("XRANGE", "{orders}:dead-letter", "-", "+")) as [[string, string[]]];
    expect(await length("{orders}:dead-letter")).toBe(1);
    expect(fields[fields.indexOf("dead_id") + 1]).toBe(killer);
    expect(fields[fields.indexOf("dead_code") + 1]).toBe("reclaims_exhausted");
    // Read once, taken over twice; the third takeover is the end.
    expect(deaths).toBe(3);
  });
});
