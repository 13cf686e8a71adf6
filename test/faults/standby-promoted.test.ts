/**
 * Fault 16: the primary PostgreSQL is gone from one moment to the next, its standby is promoted and has its address. Workers and callers go on by
 * themselves, over a time in which the address answers and is read-only. Synchronous: nothing that was accepted is lost. Asynchronous:
 * what the standby never had is lost, and the witness says so. MAKEGOOD_SOAK=1 does it with more messages.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { ownPostgres } from "../support/own-postgres.ts";
import { startCli, until, workspace } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { commitsWait, startStandby } from "../support/standby.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { scene } from "./scene.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const MESSAGES = soak ? 5_000 : 60;
vi.setConfig({ testTimeout: soak ? 900_000 : 120_000 });

async function stage() {
  const primary = await ownPostgres({ settings: { wal_keep_size: "256MB" } });
  const target = { host: "127.0.0.1", port: primary.port };
  const address = await startProxy(target);
  const link = await startProxy({ ...target });
  const receiver = await startReceiver();
  const retry = { attemptsMax: 20, baseMs: 50, maxMs: 500 };
  const sink = { kind: "http" as const, url: receiver.url };
  const url = address.via(primary.url);
  const witness = join(await workspace(), "witness.jsonl");
  const fault = await scene({
    ...{ url, log: "silent", recovery: false, verify: { witness } },
    topics: [topic("fail/over", { sink, leaseMs: 3_000, timeoutMs: 2_000, retry })],
  });
  const standby = await startStandby(primary, link.via(primary.url));
  const env = { DATABASE_URL: url, MAKEGOOD_SCHEMA: fault.schema, MAKEGOOD_POLL_MS: "200", MAKEGOOD_WITNESS: witness };
  const worker = await startCli(["work"], { ...env, MAKEGOOD_RECOVERY: "off" });
  await worker.fact(({ message }) => message === "working");

  return {
    ...{ primary, standby, link, receiver, fault, worker },
    /** The primary ends, the standby has its address, and some time later it is the primary. */
    async failover(): Promise<void> {
      await primary.stop("SIGKILL");
      target.port = standby.port;
      address.resetAll();
      const error = await fault.mg.enqueue("fail/over", 0, { key: "read-only" }).catch((thrown) => thrown);
      expect(error).toMatchObject({ code: "store_unavailable", retryable: true });
      expect(await standby.sql("select pg_promote(true) as promoted")).toEqual([{ promoted: true }]);
    },
    /** A pass of this process, which writes the witness. */
    pass: () => fault.mg.verify.run({ reach: "whole" }),
    /** `makegood verify`. */
    async verify(...args: string[]): Promise<{ code: number | null; report: Report }> {
      const process = await startCli(["verify", "--json", ...args], env);
      const { code } = await process.ended;
      return { code, report: process.facts.at(-1) as unknown as Report };
    },
    async [Symbol.asyncDispose]() {
      await worker.end("SIGKILL");
      await fault[Symbol.asyncDispose]();
      for (const one of [receiver, address, link]) await one[Symbol.asyncDispose]();
      for (const server of [primary, standby]) await server.stop("SIGKILL");
    },
  };
}

interface Report {
  readonly state: string;
  readonly divergences: readonly { readonly kind: string; readonly count: number }[];
  readonly against: { readonly unknown: string[] } | null;
}

it("fault 16, synchronous: the standby is promoted under load and nothing that was accepted is lost", async () => {
  await using scene = await stage();
  const { fault, receiver, worker } = scene;
  await commitsWait(scene.primary);
  const enough = new AbortController();
  const callers = [0, 1, 2].map(async (caller) => {
    for (let n = 0; !enough.signal.aborted; n++) {
      const [key, payload] = [`c${caller}-${n}`, { caller, n }];
      await fault.mg.enqueue("fail/over", payload, { key }).then(
        () => fault.history.ok(key, JSON.stringify(payload)),
        () => fault.history.unknown(key, JSON.stringify(payload)),
      );
      await sleep(5);
    }
  });
  const more = async (): Promise<void> => {
    const before = fault.history.names("ok").length;
    await until("messages are accepted", () => fault.history.names("ok").length >= before + MESSAGES);
  };
  await more();
  expect(await scene.pass()).toMatchObject({ state: "whole" });
  await scene.failover();
  await more();
  enough.abort();
  await Promise.all(callers);
  await fault.settled(120_000);
  expect(worker.over).toBe(false);
  expect(await fault.check({ receiver, attemptsMax: 20 })).toEqual([]);
  expect(await scene.verify()).toMatchObject({ code: 0, report: { state: "whole", divergences: [] } });
});

it("fault 16, asynchronous: what the standby never had is counted by the witness and named by the producer's list", async () => {
  await using scene = await stage();
  const { fault, standby, primary } = scene;
  const kept = await fault.send("fail/over", MESSAGES, (n) => ({ n }), "kept");
  await fault.settled();
  await until("all are counted", async () => (await scene.pass()).totals?.accepted === MESSAGES);
  const at = (await primary.sql("select pg_current_wal_lsn()::text as lsn"))[0]?.lsn;
  const reached = `select from (select pg_last_wal_replay_lsn() as lsn) x where lsn >= $1::pg_lsn`;
  await until("the standby has them", async () => (await standby.sql(reached, [at])).length === 1);

  // From here on the standby hears nothing, and the primary goes on without it.
  scene.link.silence("request", "reply");
  const lost = await fault.send("fail/over", 20, (n) => ({ n }), "lost");
  await until("those are counted, too", async () => (await scene.pass()).totals?.accepted === MESSAGES + 20);
  await scene.failover();

  const list = join(await workspace(), "ids.txt");
  await writeFile(list, [...kept, ...lost].join("\n"));
  const { code, report } = await scene.verify("--against", list);
  expect({ code, ...report }).toMatchObject({ code: 1, state: "broken", against: { ids: kept.length + lost.length } });
  expect(report.divergences).toContainEqual(expect.objectContaining({ kind: "behind_witness", count: lost.length }));
  expect(report.against?.unknown.sort()).toEqual(lost.sort());

  // Nobody restarted anything.
  await fault.send("fail/over", 20, (n) => ({ n }), "after");
  await fault.settled(120_000);
  expect(scene.worker.over).toBe(false);
});
