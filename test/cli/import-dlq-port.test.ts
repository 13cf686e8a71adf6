/**
 * `makegood import --dlq-port`, and what a start does before it (DF-29): entries, terminal records and quarantine of the former layout move once,
 * whatever is run twice; then every command works on them (N11).
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRedisDLQStore } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import { type RedisServer, startRedis } from "../settlement/redis.ts";
import { makegood, removeWorkspaces, workspace } from "./support.ts";

let redis: RedisServer;
let raw: Redis;
let cwd: string;
beforeAll(async () => {
  [redis, cwd] = await Promise.all([startRedis(), workspace()]);
  raw = new Redis({ host: "127.0.0.1", port: redis.port });
});
afterAll(async () => {
  raw.disconnect();
  await redis[Symbol.asyncDispose]();
  await removeWorkspaces();
});

const P = "{finn:hounfour:dlq}";
const CREATED = Date.UTC(2026, 0, 1);
const row = (id: string, over: Record<string, string> = {}) => ({
  reservation_id: id,
  tenant_id: "tenant-1",
  actual_cost_micro: "9007199254740993",
  trace_id: "trace-1",
  reason: "http_503: the receiver answered 503",
  response_status: "503",
  attempt_count: "3",
  next_ms: String(CREATED + 60_000),
  created_ms: String(CREATED),
  created_at: "",
  ...over,
});

/** What the scripts of the former layout wrote. */
async function former(root: string): Promise<void> {
  for (const id of ["waits-1", "waits-2"]) {
    await raw.hset(`${root}:entry:${id}`, row(id));
    await raw.zadd(`${root}:schedule`, CREATED + 60_000, id);
    await raw.zadd(`${root}:created`, CREATED, id);
  }
  await raw.hset(
    `${root}:terminal:dead-1`,
    row("dead-1", { terminal_reason: "exhausted after 5", terminal_ms: String(CREATED) }),
  );
  await raw.zadd(`${root}:terminals`, CREATED, "dead-1");
  await raw.hset(`${root}:quarantine:00ff:waits-1`, {
    reservation_id: "waits-1",
    tenant_id: "tenant-2",
    actual_cost_micro: "2",
    trace_id: "",
    reason: "x",
  });
  await raw.zadd(`${root}:quarantine`, CREATED, "conflict:00ff:waits-1");
  await raw.zadd(`${root}:schedule`, CREATED, "gone-1");
}

describe("makegood import --dlq-port", { timeout: 180_000 }, () => {
  it.each([P, "finn:hounfour:dlq"])(
    "the layout under %s: a start refuses, import moves it once, then all commands work on it",
    async (root) => {
      await raw.flushall();
      await former(root);
      const store = createRedisDLQStore(redis.connect());
      await expect(store.count()).rejects.toMatchObject({
        code: "durable_entries_left",
        message: expect.stringContaining("makegood import --dlq-port"),
      });
      const env = { REDIS_URL: redis.url, MAKEGOOD_STORE: "redis", MAKEGOOD_REDIS_PREFIX: "finn:hounfour:dlq" };
      const dry = await makegood(cwd, ["import", "--dlq-port", "--dry-run", "--json"], env);
      expect(JSON.parse(dry.stdout)).toMatchObject({ entries: 2, terminals: 1, quarantined: 1, dry_run: true });
      // What cannot be read stays, is named, and is not passed over in silence.
      const first = await makegood(cwd, ["import", "--dlq-port", "--json"], env);
      expect(first.code).toBe(1);
      expect(first.stderr).toContain(`${root}:entry:gone-1`);
      expect(JSON.parse(first.stdout)).toMatchObject({ entries: 2, terminals: 1, quarantined: 1, conflicts: 0 });
      await raw.zrem(`${root}:schedule`, "gone-1");
      const again = await makegood(cwd, ["import", "--dlq-port", "--json"], env);
      expect([again.code, JSON.parse(again.stdout)]).toEqual([
        0,
        expect.objectContaining({ entries: 0, terminals: 0, quarantined: 0 }),
      ]);

      expect(await store.count()).toBe(2);
      expect(await store.get("waits-1")).toMatchObject({
        actual_cost_micro: "9007199254740993",
        attempt_count: 3,
        response_status: 503,
        created_at: new Date(CREATED).toISOString(),
      });
      expect(await store.getTerminal("dead-1")).toMatchObject({ terminal_reason: "exhausted after 5", resolution: "open" });
      expect((await store.listTerminal()).map(({ reservation_id }) => reservation_id)).toContain("quarantined-00ff-waits-1");

      const list = await makegood(cwd, ["messages", "list", "--topic", "billing/finalize", "--status", "dead", "--json"], env);
      const dead = JSON.parse(list.stdout).data as { id: string; key: string }[];
      const id = dead.find(({ key }) => key === "dead-1")?.id as string;
      for (const args of [
        ["show", id],
        ["replay", id, "--reason", "again"],
        ["discard", id, "--reason", "written off"],
      ]) {
        const ran = await makegood(cwd, ["messages", ...args], env);
        expect([args[0], ran.stderr, ran.code]).toEqual([args[0], expect.any(String), 0]);
      }
      expect(await store.getTerminal("dead-1")).toMatchObject({ resolution: "discarded", resolved_reason: "written off" });
    },
  );
});
