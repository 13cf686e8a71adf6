/**
 * N19, N22: what the server says about itself is true. A slow store is not a broken one, ready means that an enqueue would be
 * accepted, durability is asked again while it runs, and a Redis that lost its data is noticed at the next call.
 */
import { afterEach, describe, expect, it, vi } from "vitest";
import { startStoreWatch } from "../../src/client/store-watch.ts";
import { createEvents, type MakegoodEvent } from "../../src/observe/events.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { createRedisStore } from "../../src/store/redis/index.ts";
import type { Store } from "../../src/store/store.ts";
import { claimAll, codeOf, message, redisScene } from "../faults/redis-scene.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { DURABLE, NOT_PERSISTENT, startRedis } from "../support/redis-server.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { PAUSED, startTestServer, type TestServer } from "./support.ts";

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface HealthBody {
  readonly status: string;
  readonly reasons: string[];
  readonly findings: { what: string; reason: string; since: string | null; severity: string }[];
  readonly age_ms: number;
  readonly checked_at: string;
  readonly store: { up: boolean; survives: string; error: string | null; age_ms: number };
  readonly deliver: { into: string; survives: string };
}

async function serverOn(store: Store): Promise<TestServer> {
  const server = await startTestServer({ MAKEGOOD_RECOVERY: "off" }, { store });
  undo.push(() => server.close({ drainMs: 100 }));
  await server.send("PUT", "/api/v1/topics/a/b", PAUSED);
  return server;
}

const healthOf = async (server: TestServer): Promise<HealthBody> => (await (await server.api("/health")).json()) as HealthBody;
const enqueued = async (server: TestServer, payload: unknown = 1): Promise<number> =>
  (await server.send("POST", "/api/v1/messages", { topic: "a/b", payload })).status;
const becomes = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 15_000, interval: 100 });

async function postgresServer(url = databaseUrl()): Promise<{ server: TestServer; schema: string }> {
  const schema = freshSchema();
  undo.push(() => dropSchema(schema));
  return { server: await serverOn(createPostgresStore({ url, schema })), schema };
}

/** With a role of its own, whose settings can be changed without touching anybody else on the server. */
async function serverOfRole(): Promise<{
  server: TestServer;
  role: string;
  schema: string;
  set(name: string, value: string): Promise<void>;
}> {
  const schema = freshSchema();
  const role = `${schema}_role`;
  const sql = (text: string) => withClient((client) => client.query(text));
  await sql(`create role ${role} login superuser password 'x'`);
  undo.push(() => sql(`drop role ${role}`));
  undo.push(() => dropSchema(schema));
  const url = new URL(databaseUrl());
  url.username = role;
  url.password = "x";
  return {
    role,
    schema,
    server: await serverOn(createPostgresStore({ url: url.href, schema })),
    async set(name, value) {
      await sql(`alter role ${role} set ${name} = ${value}`);
      await sql(`select pg_terminate_backend(pid) from pg_stat_activity where usename = '${role}'`);
    },
  };
}

describe("a PostgreSQL far away", () => {
  it("N19: at 25 ms and at 300 ms each way it is healthy; cut it is unhealthy; back it is healthy again", async () => {
    await using proxy = await startProxy(targetOf(databaseUrl()));
    const { server } = await postgresServer(proxy.via(databaseUrl()));
    for (const ms of [25, 300]) {
      proxy.latency(ms);
      const took: number[] = [];
      for (let n = 0; n < 10; n++) {
        const began = performance.now();
        const health = await healthOf(server);
        expect(health).toMatchObject({ status: "healthy", reasons: [], store: { up: true, error: null } });
        took.push(performance.now() - began);
        expect(Date.parse(health.checked_at)).toBeGreaterThan(0);
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
      // One that waits for the store waits each time; a busy machine holds up some.
      expect(Math.min(...took)).toBeLessThan(1_000);
      expect((await server.api("/readyz")).status).toBe(200);
    }
    proxy.refuse();
    proxy.resetAll();
    await becomes(async () => {
      expect(await healthOf(server)).toMatchObject({ status: "unhealthy", store: { up: false }, deliver: { into: "below" } });
      expect((await server.api("/readyz")).status).toBe(503);
    });
    expect((await server.api("/livez")).status).toBe(200);
    proxy.heal();
    proxy.latency(0);
    await becomes(async () => {
      expect((await healthOf(server)).status).toBe("healthy");
      expect((await server.api("/readyz")).status).toBe(200);
    });
  }, 60_000);
});

describe("ready means that an enqueue would be accepted", () => {
  /** Waits until the store refuses with this status, then until readiness says so too, and back. */
  async function follows(server: TestServer, refuse: () => Promise<unknown>, status: number, allow: () => Promise<unknown>) {
    expect([await enqueued(server), (await server.api("/readyz")).status]).toEqual([201, 200]);
    await refuse();
    await becomes(async () => expect(await enqueued(server)).toBe(status));
    await becomes(async () => expect((await server.api("/readyz")).status).toBe(503));
    // It stays so while nothing is better, whatever a question that only reads would say.
    for (let n = 0; n < 2; n++) {
      expect((await server.api("/readyz")).status).toBe(503);
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    const health = await healthOf(server);
    expect(health).toMatchObject({ status: "unhealthy", deliver: { into: "below" } });
    expect(health.findings.map(({ what }) => what)).toContain("store_refuses");
    await allow();
    // Nobody enqueues meanwhile: readiness comes back by itself.
    await becomes(async () => expect((await server.api("/readyz")).status).toBe(200));
    expect(await enqueued(server)).toBe(201);
  }

  it("N19: PostgreSQL refuses every insert for lack of disk: 507, and not ready", async () => {
    const { server, schema } = await postgresServer();
    const sql = (text: string) => withClient((client) => client.query(text));
    await follows(
      server,
      () =>
        sql(`create function "${schema}".full_disk() returns trigger language plpgsql as
          $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
          create trigger full_disk before insert on "${schema}".message for each row execute function "${schema}".full_disk()`),
      507,
      () => sql(`drop trigger full_disk on "${schema}".message`),
    );
  }, 60_000);

  it("N19: PostgreSQL turned read-only: not ready", async () => {
    const { server, set } = await serverOfRole();
    const readOnly = (what: string) => set("default_transaction_read_only", what);
    await follows(
      server,
      () => readOnly("on"),
      503,
      () => readOnly("off"),
    );
  }, 60_000);

  it("N19: a user who may not insert something that an enqueue needs: not ready, and it says which right is missing", async () => {
    const { server, role, schema } = await serverOfRole();
    const sql = (text: string) => withClient((client) => client.query(text));
    await sql(`alter role ${role} nosuperuser; alter schema "${schema}" owner to ${role}`);
    await becomes(async () => expect((await server.api("/readyz")).status).toBe(200));
    for (const [right, table] of [
      ["insert", "message"],
      ["insert", "ready_ordered"],
      ["insert", "dedupe"],
      ["insert", "lane"],
      ["select", "lane"],
    ]) {
      await sql(`revoke ${right} on "${schema}".${table} from ${role}`);
      await becomes(async () => {
        const ready = await server.api("/readyz");
        expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining(`${right} on ${table}`)]);
      });
      expect((await healthOf(server)).status).toBe("unhealthy");
      await sql(`grant ${right} on "${schema}".${table} to ${role}`);
      await becomes(async () => expect((await server.api("/readyz")).status).toBe(200));
    }
  }, 60_000);

  it("N19: PostgreSQL refuses every insert for a reason that nobody asks for: not ready after the first refusal, and it stays so", async () => {
    const { server, schema } = await postgresServer();
    const sql = (text: string) => withClient((client) => client.query(text));
    await follows(
      server,
      () =>
        sql(`create function "${schema}".audit() returns trigger language plpgsql as $$ begin raise exception 'the audit is off'; end $$;
          create trigger audit before insert on "${schema}".message for each row execute function "${schema}".audit()`),
      500,
      () => sql(`drop trigger audit on "${schema}".message`),
    );
  }, 60_000);

  it("N19: room for messages but none for their keys: not ready after the first refusal, and it stays so", async () => {
    const { server, schema } = await postgresServer();
    const sql = (text: string) => withClient((client) => client.query(text));
    const keyed = async (key: string) =>
      (await server.send("POST", "/api/v1/messages", { topic: "a/b", payload: 1, key, ordering_key: key })).status;
    for (const table of ["dedupe", "ready_ordered"]) {
      await sql(`create function "${schema}".no_room() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
        create trigger no_room before insert on "${schema}".${table} for each row execute function "${schema}".no_room()`);
      expect(await keyed(`refused-${table}`)).toBe(507);
      for (let n = 0; n < 3; n++) {
        await new Promise((resolve) => setTimeout(resolve, 700));
        expect((await server.api("/readyz")).status).toBe(503);
      }
      await sql(`drop function "${schema}".no_room() cascade`);
      await becomes(async () => expect((await server.api("/readyz")).status).toBe(200));
      expect(await keyed(`taken-${table}`)).toBe(201);
    }
  }, 60_000);

  it("the schema is gone: not ready, and it says what to do", async () => {
    const { server, schema } = await postgresServer();
    await dropSchema(schema);
    await becomes(async () => {
      const ready = await server.api("/readyz");
      expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining("makegood migrate up")]);
    });
    expect((await healthOf(server)).status).toBe("unhealthy");
  });

  it("N19: Redis at maxmemory: 507, and not ready", async () => {
    const redis = await startRedis([...DURABLE, "--maxmemory", "100mb"]);
    const server = await serverOn(createRedisStore({ redis: redis.url }));
    const limit = (bytes: string) => redis.ask("CONFIG", "SET", "maxmemory", bytes);
    await follows(
      server,
      () => limit("1mb"),
      507,
      () => limit("100mb"),
    );
  }, 60_000);
});

describe("durability", () => {
  it("N22: is asked again while Redis runs: what it survives changes, with an event and a finding, and back", async () => {
    const redis = await startRedis(DURABLE);
    const store = createRedisStore({ redis: redis.url });
    await store.open();
    undo.push(() => store.close());
    const events = createEvents();
    const heard: MakegoodEvent[] = [];
    events.on((event) => void heard.push(event));
    const watch = startStoreWatch({ store, opened: () => true, clock: systemClock, events, durabilityMs: 50 });
    undo.push(async () => watch.stop());
    watch.often(50);
    for (const [setting, bad, good] of [
      ["appendonly", "no", "yes"],
      ["maxmemory-policy", "allkeys-lru", "noeviction"],
    ] as const) {
      await becomes(async () => expect(store.traits.survives).toBe("process-crash"));
      await redis.ask("CONFIG", "SET", setting, bad);
      await becomes(async () => {
        expect(store.traits.survives).toBe("nothing");
        expect(watch.findings()).toMatchObject([{ what: "durability_lost", severity: "degraded" }]);
      });
      await redis.ask("CONFIG", "SET", setting, good);
      await becomes(async () => expect(watch.findings()).toEqual([]));
    }
    const changes = heard
      .flatMap((event) => (event.type === "durability" ? [`${event.before} ${event.survives}`] : []))
      // What it survives at the start is said once, too, when that is not a power loss.
      .filter((change) => !change.startsWith("unknown"));
    const [down, up] = ["process-crash nothing", "nothing process-crash"];
    expect(changes).toEqual([down, up, down, up]);
  });

  it("N10: the billing block says who vouches for Redis, and what of the obligations cannot be read", async () => {
    const redis = await startRedis(DURABLE);
    const billingOf = async (server: TestServer) => {
      const body = (await (await server.api("/health")).json()) as { billing?: object };
      return body.billing;
    };
    const server = await serverOn(createRedisStore({ redis: redis.url, prefix: "read" }));
    await server.send("PUT", "/api/v1/topics/billing/finalize", PAUSED);
    const well = { dlq_aof_verified: true, dlq_attested: null, dlq_unreadable: 0, ready_for_billing: true };
    await becomes(async () => expect(await billingOf(server)).toMatchObject(well));

    await redis.ask("ACL", "SETUSER", "plain", "on", "nopass", "~*", "&*", "+@all", "-config", "-info");
    const url = new URL(redis.url);
    url.username = "plain";
    url.password = "any";
    const attest = { appendonly: "yes", appendfsync: "everysec", "maxmemory-policy": "noeviction" } as const;
    const vouched = createRedisStore({ redis: url.href, prefix: "vouched", attest });
    const other = await serverOn(vouched);
    await other.send("PUT", "/api/v1/topics/billing/finalize", PAUSED);
    const sent = await other.send("POST", "/api/v1/messages", { topic: "billing/finalize", key: "r1", payload: 1 });
    const { id } = (await sent.json()) as { id: string };
    expect(await redis.ask("DEL", `{vouched}:m:${id}`)).toBe(1);
    await vouched.quarantined(true);
    const trouble = { dlq_aof_verified: false, dlq_attested: "the operator", dlq_unreadable: 1, ready_for_billing: false };
    await becomes(async () => expect(await billingOf(other)).toMatchObject(trouble));
  });

  it("N22: likewise with PostgreSQL", async () => {
    const { server, set } = await serverOfRole();
    expect((await healthOf(server)).store.survives).toBe("power-loss");
    await set("synchronous_commit", "off");
    await becomes(async () => {
      expect(await healthOf(server)).toMatchObject({ status: "degraded", store: { survives: "process-crash" } });
    });
    await set("synchronous_commit", "on");
    await becomes(async () => expect((await healthOf(server)).status).toBe("healthy"));
  });
});

describe("a Redis that lost its data", () => {
  it("N22: FLUSHALL is noticed at the next call: the enqueue is accepted, health says what was lost, and since when", async () => {
    const redis = await startRedis(NOT_PERSISTENT);
    const server = await serverOn(createRedisStore({ redis: redis.url, allowEviction: null }));
    expect(await enqueued(server)).toBe(201);
    const before = Date.now() - 1_000;
    await redis.ask("FLUSHALL");
    expect(await enqueued(server)).toBe(201);
    await becomes(async () => {
      const health = await healthOf(server);
      expect(health.status).toBe("degraded");
      const [found] = health.findings.filter(({ what }) => what === "store_lost_data");
      expect(Date.parse(found?.since ?? "")).toBeGreaterThan(before);
    });
    expect((await server.api("/readyz")).status).toBe(200);
    // The person who paused it did not want it to run because the data is gone.
    const topic = (await (await server.api("/api/v1/topics/a/b")).json()) as { paused: boolean };
    expect(topic.paused).toBe(true);
    expect(await (await server.api("/metrics")).text()).toContain('makegood_store_data_lost_total{store="redis"} 1');
    // A person knows, and says so in another process: no process says it any more, until it happens again.
    const other = await serverOn(createRedisStore({ redis: redis.url, allowEviction: null }));
    const path = "/api/v1/store/acknowledge-loss";
    expect((await other.send("POST", path, {})).status).toBe(400);
    const known = await other.send("POST", path, { reason: "a test machine" });
    expect([known.status, await known.json()]).toEqual([200, { acknowledged: true }]);
    const shown = async () => (await healthOf(server)).findings.some(({ what }) => what === "store_lost_data");
    await becomes(async () => expect(await shown()).toBe(false));
    await redis.ask("FLUSHALL");
    await becomes(async () => expect(await shown()).toBe(true));
  });

  it("N22: whatever is called first, nothing half a message comes back: the claim is lost, and no key of it is made", async () => {
    const server = await startRedis(NOT_PERSISTENT);
    for (const first of [
      "settle",
      "extend",
      "claim",
      "reclaim",
      "lanes",
      "topics",
      "topic",
      "get",
      "history",
      "list",
      "counts",
    ] as const) {
      const losses: string[] = [];
      const made = await redisScene(server, { onLoss: (text) => losses.push(text) });
      undo.push(() => made.close());
      const { store, prefix } = made;
      await store.enqueue([message(), message()]);
      const [claimed] = await claimAll(store);
      if (!claimed) throw new Error("nothing was claimed");
      const { id, claim, attempt } = claimed;
      const settlement = { kind: "delivered", outcome: "delivered" } as const;
      await server.ask("FLUSHALL");
      const calls = {
        settle: async () => expect(await store.settle([{ id, claim, attempt, durationMs: 1, settlement }])).toEqual(["lost"]),
        extend: async () => expect(await store.extend([claim], 1_000)).toEqual(["lost"]),
        claim: async () => expect(await store.claim({ owner: "w", leaseMs: 1_000, lanes: [], ids: [id] })).toEqual([]),
        reclaim: async () => expect(await store.reclaim({ owner: "w", leaseMs: 1_000, limit: 10 })).toEqual([]),
        lanes: async () => expect(await store.lanes()).toEqual([]),
        topics: async () => expect(await store.topics.list()).toHaveLength(1),
        topic: async () => expect(await store.topics.get("test/plain")).not.toBeNull(),
        get: async () => expect(await store.get(id)).toBeNull(),
        history: async () => expect((await store.history(id)).attempts).toEqual([]),
        list: async () => expect((await store.list({ limit: 10 })).data).toEqual([]),
        counts: async () => expect(await store.counts()).toEqual([]),
      };
      await calls[first]();
      expect(losses, first).toHaveLength(1);
      const keys = ((await server.ask("KEYS", "*")) as string[]).map((key) => key.slice(prefix.length + 3)).sort();
      expect(keys, first).toEqual(["meta", "t:test/plain", "topics"]);
      expect(await codeOf(store.enqueue([message()]))).toBe("accepted");
    }
  }, 60_000);
});
