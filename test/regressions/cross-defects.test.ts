/**
 * Defects that ran through all the seeds and must not be rebuilt, by their numbers: DX-1, 2, 5 and 12 (DX-6, 9 and 10 stand in
 * test/delivery), and of the outbox those of which the kernel carries only the general half so far: DO-15 and DO-18.
 */
import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { decide } from "../../src/message/decide.ts";
import { RETRY_POLICIES } from "../../src/message/retry-policy.ts";
import { scene } from "../faults/scene.ts";
import { databaseUrl } from "../support/postgres.ts";
import { startReceiver } from "../support/receiver.ts";

vi.setConfig({ testTimeout: 60_000 });

describe("defects across the seeds", () => {
  it("DX-1: every named policy is an entry of one registry, judged by one function, and ends", () => {
    const names = ["exponential", "table", "settlement", "audit", "usage", "recovery-reclaim", "recovery-outbox"];
    expect([...RETRY_POLICIES.keys()]).toEqual(expect.arrayContaining(names));
    for (const [name, policy] of RETRY_POLICIES) {
      const rules = { policy, ordering: "key" as const, onUnknown: "retry" as const };
      const settlements = Array.from({ length: policy.attemptsMax }, (_, n) => {
        const message = { attempt: n + 1, base: 0, handedDown: false, suspicion: 0 as const };
        return decide(message, { kind: "retry", code: "x", error: "x" }, rules, 0.5);
      });
      const kinds = settlements.map(({ kind }) => kind);
      expect({ name, kinds }).toEqual({ name, kinds: [...Array(policy.attemptsMax - 1).fill("retry"), "dead"] });
      for (const one of settlements) if (one.kind === "retry") expect(one.delayMs).toBeLessThanOrEqual(policy.maxMs);
    }
  });

  it("DX-2: the business write and the message are one transaction: both or neither, and no second system", async () => {
    await using stage = await scene({ topics: [topic("one/write")] });
    await stage.sql("create table charge (id int primary key)");
    const client = new pg.Client({ connectionString: databaseUrl() });
    client.on("error", () => undefined);
    await client.connect();
    const charge = async (id: number): Promise<string> => {
      await client.query("begin");
      await client.query(`insert into "${stage.schema}".charge values ($1)`, [id]);
      return (await stage.mg.enqueue("one/write", { id }, { tx: client, key: `charge-${id}` })).id;
    };
    await charge(1);
    await client.query("rollback");
    const committed = await charge(2);
    await client.query("commit");
    const cut = await charge(3);
    // The process dies here, as far as the server can tell.
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    await client.end().catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await stage.sql("select id from charge")).toEqual([{ id: 2 }]);
    expect((await stage.sql("select id::text from message")).map(({ id }) => id)).toEqual([committed]);
    expect(await stage.store.get(cut)).toBeNull();
  });

  it("DX-5: a message keeps the version it was made with, also when its topic has moved on", async () => {
    const seen: (number | null)[] = [];
    const sink = (_payload: unknown, { schemaVersion }: { schemaVersion: number | null }) => void seen.push(schemaVersion);
    await using stage = await scene({ topics: [topic("has/version", { sink, schemaVersion: 1 })] });
    await stage.mg.enqueue("has/version", { old: true });
    await stage.store.topics.put(topic("has/version", { sink, schemaVersion: 2 }).definition, "code");
    await vi.waitFor(async () => {
      const { id } = await stage.mg.enqueue("has/version", { old: false });
      expect(await stage.sql("select schema_version from message where id = $1", [id])).toEqual([{ schema_version: 2 }]);
    }, 15_000);
    stage.mg.work();
    await stage.settled();
    expect(seen).toContain(1);
    expect(seen).toContain(2);
  });

  it("DX-12: one attempt is one request: no layer below the policy tries again by itself", async () => {
    await using receiver = await startReceiver();
    const sink = { kind: "http" as const, url: receiver.url };
    await using stage = await scene({
      topics: [topic("one/shot", { sink, retry: { attemptsMax: 3, baseMs: 50 } })],
      concurrency: 1,
    });
    receiver.script("k-0", [{ status: 503 }, "reset", { status: 500 }]);
    receiver.script("k-1", [{ status: 200 }]);
    receiver.script("k-2", ["reset", { status: 429, headers: { "retry-after": "0" } }, { status: 200 }]);
    stage.mg.work();
    const ids = await stage.send("one/shot", 3);
    await stage.settled();
    const requests = ids.map((id) => receiver.of(id).map(({ attempt }) => attempt));
    expect(requests).toEqual([[1, 2, 3], [1], [1, 2, 3]]);
    for (const id of ids) {
      expect((await stage.store.history(id)).attempts).toHaveLength(receiver.of(id).length);
    }
  });

  it("DO-15, DO-18: keys are bounded and never empty, and a topic's schema refuses what it does not allow", async () => {
    const allowed = new Set(["tokens"]);
    const schema = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) => {
          const names = Object.keys(value as object).filter((name) => !allowed.has(name));
          return names.length === 0 ? { value } : { issues: [{ message: `not allowed: ${names}` }] };
        },
      },
    };
    await using stage = await scene({ topics: [topic("usage/it", { schema })] });
    for (const key of ["", "k".repeat(256)])
      await expect(stage.mg.enqueue("usage/it", { tokens: 1 }, { key })).rejects.toThrow(/key/);
    await expect(stage.mg.enqueue("usage/it", { tokens: 1, provider_id: "x" })).rejects.toMatchObject({
      code: "payload_rejected_by_schema",
    });
    expect((await stage.mg.enqueue("usage/it", { tokens: 1 }, { key: "k".repeat(255) })).inserted).toBe(true);
  });
});
