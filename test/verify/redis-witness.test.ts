/**
 * Conservation of Redis with its witness, in a process of one's own and as the command line and `serve` have it: data of earlier that was brought back, data that was flushed, and one
 * shard of a cluster that went back while another did not.
 */
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
import { createMakegood, type Makegood } from "../../src/index.ts";
import type { ConservationReport } from "../../src/store/conservation.ts";
import { connectRedis } from "../../src/store/redis/index.ts";
import { PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { makegood, removeWorkspaces, running, workspace } from "../cli/support.ts";
import { until } from "../support/redis-cluster.ts";
import { DURABLE, startRedis } from "../support/redis-server.ts";
import { kinds } from "./cases.ts";
import { type RedisVerifyScene, redisVerifyScene } from "./redis-scene.ts";

const directory = await mkdtemp(join(tmpdir(), "makegood-witness-"));
const server = await startRedis();
const scenes: RedisVerifyScene[] = [];
let file = 0;

async function opened(...given: Parameters<typeof redisVerifyScene>): Promise<RedisVerifyScene> {
  const scene = await redisVerifyScene(...given);
  scenes.push(scene);
  return scene;
}
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});
afterAll(async () => {
  await removeWorkspaces();
  await rm(directory, { recursive: true });
});

const witnessed = ({ store }: RedisVerifyScene, witness: string): Promise<Makegood> =>
  createMakegood({ store, sharedStore: true, log: "silent", verify: { witness } });
const ran = (mg: Makegood): Promise<ConservationReport> => mg.verify.run({ reach: "whole" });
const freshFile = (): string => join(directory, `${file++}.ndjson`);

it("finds that the files of earlier were brought back, and that the store went on from there", async () => {
  const scene = await opened(server.url);
  const witness = freshFile();
  const mg = await witnessed(scene, witness);
  await scene.accept(3);
  expect(await ran(mg)).toMatchObject({ state: "whole" });
  await server.stop();
  await cp(server.folder, join(directory, "earlier"), { recursive: true });
  await server.start();
  await scene.accept(4);
  expect(await ran(mg)).toMatchObject({ state: "whole", totals: { accepted: 7 } });
  await server.stop();
  await rm(join(server.folder, "appendonlydir"), { recursive: true });
  await cp(join(directory, "earlier"), server.folder, { recursive: true });
  await server.start();
  const report = await ran(mg);
  expect(report).toMatchObject({ state: "broken", totals: { accepted: 3 } });
  expect(kinds(report)).toEqual(["behind_witness"]);
  expect(report.divergences[0]).toMatchObject({ count: 4 });
  expect(mg.findings()).toMatchObject([{ what: "conservation_broken" }]);
  await scene.accept(6);
  await ran(mg);
  expect(kinds(await ran(mg))).toEqual(["witness_differs"]);
  expect((await readFile(witness, "utf8")).trim().split("\n")).toHaveLength(2);
});

it("finds that the data was flushed, also in the first pass of a process that never saw it", async () => {
  const scene = await opened(server.url);
  const witness = freshFile();
  await scene.accept(5);
  expect(await ran(await witnessed(scene, witness))).toMatchObject({ state: "whole" });
  await server.ask("FLUSHALL");
  const later = await opened(server.url, { prefix: scene.prefix });
  const report = await ran(await witnessed(later, witness));
  expect(report).toMatchObject({ state: "broken", divergences: [{ kind: "behind_witness", count: 5 }] });
  expect(await ran(await witnessed(later, freshFile()))).toMatchObject({ state: "whole" });
});

it("finds the shard of a cluster that went back, and not the other, in one file", async () => {
  const node = await startRedis([...DURABLE, "--cluster-enabled", "yes"]);
  await node.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until("the cluster is up", async () => /cluster_state:ok/.test(String(await node.ask("CLUSTER", "INFO"))));
  const witness = freshFile();
  const shards = [
    await opened(node.url, { port: await connectRedis(node.url) }),
    await opened(node.url, { port: await connectRedis(node.url) }),
  ];
  const [one, other] = shards as [RedisVerifyScene, RedisVerifyScene];
  const [ofOne, ofOther] = [await witnessed(one, witness), await witnessed(other, witness)];
  for (const [scene, mg] of [[one, ofOne] as const, [other, ofOther] as const]) {
    await scene.accept(2);
    expect(await ran(mg)).toMatchObject({ state: "whole", totals: { accepted: 2 } });
  }
  const restore = await kept(one);
  for (const [scene, mg] of [[one, ofOne] as const, [other, ofOther] as const]) {
    await scene.accept(3);
    await scene.settle(await scene.claim(1));
    expect(await ran(mg)).toMatchObject({ state: "whole", totals: { accepted: 5 } });
  }
  await restore();
  expect(await ran(ofOne)).toMatchObject({ state: "broken", divergences: [{ kind: "behind_witness", count: 3 }] });
  expect(await ran(ofOther)).toMatchObject({ state: "whole", divergences: [] });
  await node.stop();
});

/** All keys of a shard as they are now, to be brought back. */
async function kept({ ask }: RedisVerifyScene): Promise<() => Promise<void>> {
  const copies: [string, string][] = [];
  for (const key of (await ask("KEYS", "@*")) as string[]) {
    await ask("COPY", key, `${key}~`);
    copies.push([key, `${key}~`]);
  }
  return async () => {
    for (const key of (await ask("KEYS", "@*")) as string[]) if (!key.endsWith("~")) await ask("DEL", key);
    for (const [key, copy] of copies) await ask("RENAME", copy, key);
  };
}

it("makegood verify and serve say so on Redis: exit codes, a producer's ids, /health and metrics", async () => {
  const scene = await opened(server.url);
  const ids = await scene.accept(3);
  await scene.settle(await scene.claim(1));
  const cwd = await workspace();
  const env = { MAKEGOOD_STORE: "redis", REDIS_URL: server.url, MAKEGOOD_REDIS_PREFIX: scene.prefix };
  const whole = await makegood(cwd, ["verify", "--against", "-"], env, ids.join("\n"));
  expect([whole.code, whole.stderr]).toEqual([0, ""]);
  expect(whole.stdout).toContain("conservation is whole\n3 accepted = 1 delivered + 0 resolved + 0 discarded + 2 live\n");
  expect(whole.stdout).toContain("of 3 ids in the list: 2 live, 1 delivered");
  const [waiting] = (await scene.ask("ZRANGE", `@s:p:${PLAIN}`, 0, 0)) as string[];
  // Claimed above, and of no lease any more.
  const [claimed] = (await scene.ask("ZRANGE", `@s:i:${PLAIN}`, 0, 0)) as string[];
  await scene.ask("DEL", `@m:${waiting ?? claimed}`);
  const broken = await makegood(cwd, ["verify"], env);
  expect([broken.code, broken.stderr.includes(`state_without_message: 1 (${PLAIN}`)]).toEqual([1, true]);
  const serving = await running(cwd, ["serve"], { ...env, MAKEGOOD_PORT: "0", MAKEGOOD_LOG: "json" });
  try {
    const { url } = JSON.parse(await serving.line(/"listening"/)) as { url: string };
    const asked = await fetch(`${url}/api/v1/verify`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(await asked.json()).toMatchObject({ state: "broken", divergences_total: 1 });
    expect(await (await fetch(`${url}/health`)).text()).toContain("conservation_broken");
    await until("the gauge is there", async () => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return (
        /^makegood_conservation_state\{state="broken"\} 1$/m.test(text) && /^makegood_conservation_divergences 1$/m.test(text)
      );
    });
  } finally {
    expect(await serving.stop()).toBe(0);
  }
}, 60_000);
