/**
 * `makegood import --dlq-port`, and what a start does before it (DF-29): entries, terminal records and quarantine of the former layout move once,
 * whatever is run twice; then every command works on them (N11).
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { importFormerPort } from "../../src/presets/settlement/former-port.ts";
import { createRedisDLQStore } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import type { RedisPort } from "../../src/store/redis/index.ts";
import { type RedisServer, startRedis } from "../settlement/redis.ts";
import { makegood, removeWorkspaces, workspace } from "./support.ts";
import { makegoodHere } from "./terminal.ts";

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
      const dry = await makegoodHere(cwd, ["import", "--dlq-port", "--dry-run", "--json"], env);
      expect(JSON.parse(dry.stdout)).toMatchObject({ entries: 2, terminals: 1, quarantined: 1, dry_run: true });
      // What cannot be read is named, and is not passed over in silence.
      const first = await makegood(cwd, ["import", "--dlq-port", "--json"], env);
      expect(first.code).toBe(1);
      expect(first.stderr).toContain(`${root}:entry:gone-1`);
      expect(JSON.parse(first.stdout)).toMatchObject({ entries: 2, terminals: 1, quarantined: 1, conflicts: 0 });
      await raw.zrem(`${root}:schedule`, "gone-1");
      const again = await makegoodHere(cwd, ["import", "--dlq-port", "--json"], env);
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

      const list = await makegoodHere(
        cwd,
        ["messages", "list", "--topic", "billing/finalize", "--status", "dead", "--json"],
        env,
      );
      const dead = JSON.parse(list.stdout).data as { id: string; key: string }[];
      const id = dead.find(({ key }) => key === "dead-1")?.id as string;
      for (const args of [
        ["show", id],
        ["replay", id, "--reason", "again"],
        ["discard", id, "--reason", "written off"],
      ]) {
        const ran = await makegoodHere(cwd, ["messages", ...args], env);
        expect([args[0], ran.stderr, ran.code]).toEqual([args[0], expect.any(String), 0]);
      }
      expect(await store.getTerminal("dead-1")).toMatchObject({ resolution: "discarded", resolved_reason: "written off" });
    },
  );

  const env = () => ({ REDIS_URL: redis.url, MAKEGOOD_STORE: "redis", MAKEGOOD_REDIS_PREFIX: "finn:hounfour:dlq" });
  const formerKeys = async () =>
    (await raw.keys("*")).filter((key) => /:(entry|terminal|schedule|created|quarantine:)/.test(key));

  it("cut off after any command, the next run finishes it: each once, and no start before that", async () => {
    const never = 1_000;
    let cut = 0;
    for (let last = false; !last; cut++) {
      await raw.flushall();
      await former(P);
      await raw.zrem(`${P}:schedule`, "gone-1");
      let sent = 0;
      const real = redis.connect();
      const cutting: RedisPort = {
        ...real,
        send: async (...args) => {
          if (sent++ >= cut) throw new Error("killed");
          return real.send(...args);
        },
      };
      last = await importFormerPort(cutting, { prefix: "finn:hounfour:dlq", unreadable: () => undefined }).then(
        () => true,
        () => false,
      );
      const left = (await formerKeys()).length;
      const start = createRedisDLQStore(redis.connect()).count();
      if (left > 0) await expect(start).rejects.toMatchObject({ code: "durable_entries_left" });
      else await start;
      const moved = await importFormerPort(redis.connect(), { prefix: "finn:hounfour:dlq", unreadable: () => undefined });
      const store = createRedisDLQStore(redis.connect());
      const now = [moved.left, await store.count(), (await store.listTerminal()).length, await formerKeys()];
      expect([cut, ...now]).toEqual([cut, 0, 2, 2, []]);
      if (cut > never) throw new Error("the import never ends");
    }
    expect(cut).toBeGreaterThan(10);
  });

  it("nothing is left behind: what no index leads to, what has lost its payload, long names, a value that is no hash", async () => {
    await raw.flushall();
    await raw.hset(`${P}:entry:unscheduled`, row("unscheduled"));
    await raw.zadd(`${P}:schedule`, CREATED, "gone-1");
    const long = "é".repeat(127);
    await raw.hset(`${P}:quarantine:00ff:${long}`, row(long, { trace_id: "漢".repeat(1_300) }));
    await raw.set(`${P}:quarantine:00aa:text`, "a precious text");
    for (const member of [`conflict:00ff:${long}`, "corrupt:00aa:text"]) await raw.zadd(`${P}:quarantine`, CREATED, member);
    const first = await makegoodHere(cwd, ["import", "--dlq-port", "--json"], env());
    expect([first.code, JSON.parse(first.stdout)]).toEqual([1, expect.objectContaining({ entries: 1, quarantined: 2, left: 1 })]);
    expect(first.stderr).toContain(`${P}:entry:gone-1`);
    // Named once: the start is free, and a person finds each among the dead letters.
    expect((await makegoodHere(cwd, ["import", "--dlq-port"], env())).code).toBe(0);
    const store = createRedisDLQStore(redis.connect());
    expect(await store.get("unscheduled")).toMatchObject({ actual_cost_micro: "9007199254740993" });
    const terminals = (await store.listTerminal()).map(({ terminal_reason }) => terminal_reason);
    expect(terminals).toHaveLength(3);
    for (const text of ["gone-1", "a precious text", long]) expect(terminals.join()).toContain(text);
    expect(await formerKeys()).toEqual([]);
  });
});
