/**
 * Runbooks of Redis, followed by a shell on real servers: dead letters of a stream, a primary that Sentinel replaced, a node of a cluster that
 * is gone. The alert fires by its shipped rule first and is silent at the end.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, expect, it } from "vitest";
import { fromIoredis } from "../../src/store/redis/index.ts";
import { definition, newMessage, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { verbs } from "../../src/testing/store-conformance/scene.ts";
import { removeWorkspaces, workspace } from "../cli/support.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { startReceiver } from "../support/receiver.ts";
import { startRedisCluster, until } from "../support/redis-cluster.ts";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { openRedisStore } from "../support/redis-store.ts";
import { follow } from "./runbook.ts";
import { type Daemon, openDeadLetters, putTopic, send, shownAs, startDaemon, systemctl } from "./scene.ts";

afterAll(removeWorkspaces);

const STREAM = "m10:evaluate:stream";
const GROUP = "m10:evaluate:group";
const DEAD = "m10:evaluate:dead-letter";
const EVALUATE = "recovery/evaluate";
const SOAK = process.env.MAKEGOOD_SOAK === "1";
/** The alert asks for more than a hundred; ten a second are refused. */
const REFUSED = SOAK ? 120 : 12;

/** Entries of a reader that died over them again and again; the last one is larger than a message may be. */
async function killers(redis: RedisServer): Promise<void> {
  await redis.ask("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM").catch(() => undefined);
  const ids: string[] = [];
  for (let n = 0; n < REFUSED; n++) {
    const more = n === REFUSED - 1 ? ["more", "x".repeat(1_100_000)] : [];
    ids.push(String(await redis.ask("XADD", STREAM, "*", "candidate_id", `c-${n}`, "priority", "3", ...more)));
  }
  await redis.ask("XREADGROUP", "GROUP", GROUP, "dead", "COUNT", "1000", "STREAMS", STREAM, ">");
  const twoDays = String(2 * 86_400_000);
  await redis.ask("XCLAIM", STREAM, GROUP, "dead", "0", ...ids, "IDLE", twoDays, "RETRYCOUNT", "9");
}

it("stream dead letters: replayed once, what can never be accepted is settled, and the stream is empty", async () => {
  const [redis, cwd, schema] = [await startRedis(DURABLE), await workspace(), freshSchema()];
  await using receiver = await startReceiver();
  const store = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema, MAKEGOOD_RECOVERY: "off" };
  await using makegood = await startDaemon(cwd, { ...store, MAKEGOOD_STREAMS: "recovery", REDIS_ADDR: redis.url });
  // The stream's door declares the topic where it is missing; it must not come second.
  await expect.poll(async () => (await fetch(`${makegood.url}/api/v1/topics/${EVALUATE}`)).status).toBe(200);
  await putTopic(makegood, { sink: { kind: "http", url: receiver.url } }, EVALUATE);
  const printed = await follow("stream-dead-letters", SOAK ? "M10DeadLettersHigh" : null, {
    cwd,
    env: { SETTINGS: makegood.file, STREAM: "recovery", DEAD, REDIS: redis.url },
    scrape: makegood.scrape,
    async inject() {
      await makegood.service.stop();
      await killers(redis);
      await makegood.service.start();
    },
    until: (scrape, there) => {
      const open = openDeadLetters(scrape, "streams/refused");
      // The one that is too large is in Redis only.
      return there ? open === REFUSED - 1 : open === 0;
    },
  });
  expect(printed.Look).toContain("reclaims_exhausted");
  expect(printed.Do).toMatch(/1 replayed, 0 were before, 0 could not be/);
  expect(printed.Do).toContain(`${REFUSED - 2} replayed, 0 were before, 1 could not be`);
  expect(printed["Over when"]).toMatch(/^0 in m10:evaluate:dead-letter\n/);
  const [kept = ""] = (await readdir(cwd)).filter((name) => /^recovery-\d+-\d+\.json$/.test(name));
  expect(JSON.parse(await readFile(join(cwd, kept), "utf8")).fields.more).toHaveLength(1_100_000);
  await expect.poll(() => receiver.effects.size).toBe(REFUSED - 1);
  await makegood.service.stop();
  await redis.stop();
  await dropSchema(schema);
}, 60_000);

const isUp = (scrape: string, there: boolean) => shownAs(scrape, /^makegood_store_up /) === (there ? 0 : 1);

const onRedis = async (cwd: string, url: string): Promise<Daemon> => {
  const makegood = await startDaemon(cwd, { MAKEGOOD_STORE: "redis", REDIS_URL: url });
  await putTopic(makegood, { sink: { kind: "notify" }, paused: true });
  await send(makegood, { amount: 1 });
  return makegood;
};

const pending = async (makegood: Daemon) =>
  shownAs(await makegood.scrape(), /^makegood_messages\{topic="shop\/charge",status="pending"/);

it("REC-37, Sentinel: the address of the new primary is put into the settings, and what was replicated is there", async () => {
  const [primary, cwd] = [await startRedis(DURABLE), await workspace()];
  const replica = await startRedis([...DURABLE, "--replicaof", "127.0.0.1", String(primary.port)]);
  const quick = ["down-after-milliseconds", "failover-timeout"];
  const sentinel = await startRedis([], { sentinel: true });
  await sentinel.ask("SENTINEL", "MONITOR", "shop", "127.0.0.1", String(primary.port), "1");
  for (const name of quick) await sentinel.ask("SENTINEL", "SET", "shop", name, "500");
  await using makegood = await onRedis(cwd, primary.url);
  // A program of its own may let its client ask Sentinel.
  const client = new Redis({ sentinels: [{ host: "127.0.0.1", port: sentinel.port }], name: "shop", lazyConnect: true });
  const own = await openRedisStore({ redis: fromIoredis(client), prefix: "own" });
  await own.topics.put(definition(PLAIN), "code");
  const sentinelSees = async (text: RegExp) => text.test(String(await sentinel.ask("INFO", "sentinel")));
  await until("Sentinel knows the replica", () => sentinelSees(/slaves=1/));
  await until("the replica has all", async () => {
    const info = String(await primary.ask("INFO", "replication"));
    return /master_repl_offset:(\d+)/.exec(info)?.[1] === /slave0:.*offset=(\d+)/.exec(info)?.[1];
  });
  const printed = await follow("redis-sentinel", "MakegoodStoreDown", {
    cwd,
    env: { SENTINEL: sentinel.url, PRIMARY: "shop", SETTINGS: makegood.file },
    programs: { systemctl: systemctl({ makegood: makegood.service }) },
    scrape: makegood.scrape,
    async inject() {
      await primary.stop("SIGKILL");
      await until("another is the primary", () => sentinelSees(new RegExp(`address=127.0.0.1:${replica.port}`)));
    },
    until: isUp,
  });
  expect(printed["Over when"]).toMatch(/\nmaster\n/);
  expect(await pending(makegood)).toBe(1);
  const { id } = verbs(own);
  await until("the program's own client found it", async () => (await own.enqueue([newMessage(id())]))[0]?.kind === "accepted");
  await own.close();
  await makegood.service.stop();
  for (const server of [sentinel, replica]) await server.stop();
}, 60_000);

async function cluster() {
  if (SOAK) {
    const { nodes, masterOf } = await startRedisCluster();
    const master = await masterOf("{makegood}:x");
    return { node: nodes.find((one) => one !== master) as RedisServer, master, nodes };
  }
  // One master that has all slots, and none that could take over.
  const master = await startRedis([...DURABLE, "--cluster-enabled", "yes"]);
  await master.ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until("the cluster is there", async () => /cluster_state:ok/.test(String(await master.ask("CLUSTER", "INFO"))));
  return { node: master, master, nodes: [master] };
}

it("REC-37, Cluster: a node that comes back with its file has what it held", async () => {
  const { node, master, nodes } = await cluster();
  const cwd = await workspace();
  await using makegood = await onRedis(cwd, nodes.map(({ url }) => url).join(","));
  const printed = await follow("redis-cluster", "MakegoodStoreDown", {
    cwd,
    env: { NODE: node.url, SETTINGS: makegood.file },
    programs: { systemctl: systemctl({ "redis-server": { start: () => master.start() } }) },
    scrape: makegood.scrape,
    inject: () => master.stop("SIGKILL"),
    until: isUp,
  });
  expect(printed["Over when"]).toContain("cluster_state:ok");
  expect(await pending(makegood)).toBe(1);
  await makegood.service.stop();
  for (const server of nodes) await server.stop();
}, 120_000);
