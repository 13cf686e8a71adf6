/**
 * REC-52, DR-46: `makegood check-redis` and its exit codes, and what `serve` and `work` do with a Redis that would lose messages.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { makegood, removeWorkspaces, running, workspace } from "./support.ts";
import { makegoodHere } from "./terminal.ts";

let server: RedisServer;
let cwd: string;
const env = (more: Record<string, string> = {}) => ({ REDIS_URL: server.url, ...more });

beforeAll(async () => {
  server = await startRedis([...DURABLE, "--maxmemory", "100mb"]);
  cwd = await workspace();
});
afterAll(removeWorkspaces);

const set = (name: string, value: string) => server.ask("CONFIG", "SET", name, value);

describe("check-redis", () => {
  it("0 when what is required holds; --strict wants what is advised, too", async () => {
    const usual = await makegood(cwd, ["check-redis"], env());
    expect([usual.code, usual.stderr]).toEqual([0, ""]);
    expect(usual.stdout).toMatch(/verified\s+appendonly\s+yes/);
    expect(usual.stdout).toMatch(/survives process crash/);
    const strict = await makegoodHere(cwd, ["check-redis", "--strict", "--json"], env());
    expect(strict.code).toBe(1);
    const { status, survives, nodes } = JSON.parse(strict.stdout);
    expect([status, survives, nodes.length]).toEqual(["fail", "process-crash", 1]);
  });

  it("1 when something required failed", async () => {
    await set("maxmemory-policy", "allkeys-lru");
    try {
      const { code, stdout } = await makegoodHere(cwd, ["check-redis", "--json"], env());
      expect(code).toBe(1);
      const found = JSON.parse(stdout).nodes[0].findings.find((one: { name: string }) => one.name === "maxmemory-policy");
      expect([found.verdict, found.value, found.required]).toEqual(["failed", "allkeys-lru", true]);
    } finally {
      await set("maxmemory-policy", "noeviction");
    }
  });

  it("DR-46: 2 when nobody answers, and 2 without REDIS_URL", async () => {
    const away = await makegoodHere(cwd, ["check-redis"], { REDIS_URL: "redis://127.0.0.1:1" });
    expect(away.code).toBe(2);
    expect(away.stderr).toMatch(/cannot be reached/);
    expect((await makegoodHere(cwd, ["check-redis"])).code).toBe(2);
  });

  it("what cannot be read may be attested, and nothing else", async () => {
    const closed = await startRedis([...DURABLE, "--rename-command", "CONFIG", "", "--rename-command", "INFO", ""]);
    const url = { REDIS_URL: closed.url };
    expect((await makegoodHere(cwd, ["check-redis"], url)).code).toBe(1);
    const attest = { MAKEGOOD_REDIS_ATTEST: "appendonly=yes,appendfsync=everysec,maxmemory-policy=noeviction" };
    const attested = await makegoodHere(cwd, ["check-redis"], { ...url, ...attest });
    expect(attested.code).toBe(0);
    expect(attested.stdout).toMatch(/attested by the operator/);
    expect((await makegoodHere(cwd, ["check-redis"], { ...url, MAKEGOOD_REDIS_ATTEST: "appendonly=no" })).code).toBe(2);
  });
});

describe("serve on Redis", () => {
  it("refuses a policy that evicts unless it is named, and runs on one that does not", async () => {
    const redis = env({ MAKEGOOD_STORE: "redis", MAKEGOOD_PORT: "0", MAKEGOOD_LOG: "json" });
    await set("maxmemory-policy", "allkeys-lru");
    try {
      for (const command of ["serve", "work"]) {
        const refused = await makegood(cwd, [command], redis);
        expect(refused.code, command).not.toBe(0);
        expect(refused.stdout + refused.stderr).toMatch(/MAKEGOOD_ALLOW_EVICTION=allkeys-lru/);
      }
      const allowed = await running(cwd, ["serve"], { ...redis, MAKEGOOD_ALLOW_EVICTION: "allkeys-lru" });
      await allowed.line(/listening/);
      expect(await allowed.stop()).toBe(0);
    } finally {
      await set("maxmemory-policy", "noeviction");
    }
  }, 60_000);

  it("delivers over the API", async () => {
    const server = await running(cwd, ["serve"], env({ MAKEGOOD_STORE: "redis", MAKEGOOD_PORT: "0", MAKEGOOD_LOG: "json" }));
    try {
      const { url } = JSON.parse(await server.line(/"listening"/)) as { url: string };
      const json = { "content-type": "application/json" };
      const put = await fetch(`${url}/api/v1/topics/demo/hello`, {
        method: "PUT",
        headers: json,
        body: '{"sink":{"kind":"notify"}}',
      });
      expect(put.ok).toBe(true);
      const body = '{"topic":"demo/hello","key":"hello-1","payload":{"text":"Hello, Redis!"}}';
      const post = await fetch(`${url}/api/v1/messages`, { method: "POST", headers: json, body });
      expect(post.ok).toBe(true);
      await server.line(/Hello, Redis!/);
    } finally {
      expect(await server.stop()).toBe(0);
    }
  }, 60_000);

  it("MAKEGOOD_STORE=redis without REDIS_URL is a mistake of the configuration", async () => {
    const { code, stderr } = await makegood(cwd, ["serve"], { MAKEGOOD_STORE: "redis" });
    expect([code, /REDIS_URL/.test(stderr)]).toEqual([2, true]);
  });
});
