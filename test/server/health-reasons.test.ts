/**
 * Reasons in /health that a person on call acts on: many open dead letters, and a ladder in use. (A topic without a worker: N14.)
 */
import { describe, expect, it } from "vitest";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { startTestServer, type TestServer } from "./support.ts";

interface Told {
  readonly status: string;
  readonly reasons: string[];
  readonly findings: { readonly what: string; readonly reason: string }[];
}

const healthOf = async (server: TestServer): Promise<Told> => (await (await server.api("/health")).json()) as Told;
const named = async (server: TestServer): Promise<string[]> => (await healthOf(server)).findings.map(({ what }) => what);

describe("reasons", () => {
  it("more open dead letters than MAKEGOOD_DEAD_LETTERS_MAX, with the topics that have most; none at the limit", async () => {
    await using receiver = await startReceiver(() => ({ status: 400 }));
    const server = await startTestServer({ MAKEGOOD_DEAD_LETTERS_MAX: "2", MAKEGOOD_RECOVERY: "off" });
    const die = (topic: string) => server.send("POST", "/api/v1/messages", { topic, payload: 1 });
    for (const topic of ["a/b", "a/c"])
      await server.send("PUT", `/api/v1/topics/${topic}`, { sink: { kind: "http", url: receiver.url } });
    const dead = async () =>
      (await server.store.counts()).filter(({ status }) => status === "dead").reduce((sum, one) => sum + one.count, 0);
    await die("a/b");
    await die("a/b");
    await until("two are dead", async () => (await dead()) === 2);
    expect(await named(server)).not.toContain("many_dead_letters");
    await die("a/c");
    await until("three are dead", async () => (await dead()) === 3);
    await until("health says so", async () => (await named(server)).includes("many_dead_letters"));
    const { status, reasons } = await healthOf(server);
    expect([status, reasons]).toEqual(["degraded", ["3 open dead letters, more than 2; most in a/b 2, a/c 1"]]);
    await server.close({ drainMs: 100 });
  });

  it("a ladder in use: the primary is away and deliver() goes below it, until it is back and nothing is left there", async () => {
    let well = false;
    await using receiver = await startReceiver(() => ({ status: well ? 200 : 503 }));
    const schema = freshSchema();
    const proxy = await startProxy(targetOf(databaseUrl()));
    const store = createPostgresStore({ url: proxy.via(databaseUrl()), schema });
    const server = await startTestServer({ MAKEGOOD_RECOVERY: "off" }, { store });
    try {
      await server.send("PUT", "/api/v1/topics/a/b", { sink: { kind: "http", url: receiver.url } });
      expect((await healthOf(server)).reasons).toEqual([]);
      proxy.refuse();
      proxy.resetAll();
      await server.mg.deliver("a/b", 1, { key: "k" });
      expect(await named(server)).toEqual(expect.arrayContaining(["ladder_in_use", "held_below"]));
      well = true;
      proxy.heal();
      await until(
        "it is back",
        async () => !(await named(server)).some((what) => what === "ladder_in_use" || what === "held_below"),
      );
    } finally {
      await server.close({ drainMs: 100 });
      await proxy[Symbol.asyncDispose]();
      await dropSchema(schema);
    }
  }, 60_000);
});
