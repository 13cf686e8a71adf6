/**
 * Every check that doctor makes has been seen to complain: those that healthy places have are listed by running doctor on them, and each is
 * either made to fail here, or named with the test that does, or with the reason why it cannot.
 */
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { examineNode } from "../../src/doctor/machine.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { clockSkew } from "../../src/store/shared/examined.ts";
import { definition, newMessage, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { verbs } from "../../src/testing/store-conformance/scene.ts";
import { startTestServer, type TestServer } from "../server/support.ts";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { type Doctored, doctor } from "./support.ts";

type Env = Record<string, string>;

const schema = freshSchema();
let folder: string;
let file: string;
let redis: RedisServer;
let careless: RedisServer;
let server: TestServer;
let another: Server;

/** Answers everything with this, as a server of another kind would: no number, no job, nothing accounted for. */
const ANOTHER = { status: "degraded", reasons: ["it says so"], version: "0", state: "broken", reason: "gone", data: [] };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "makegood-each-"));
  file = join(folder, "a-file");
  await writeFile(file, "");
  [redis, careless, server] = await Promise.all([
    startRedis([...DURABLE, "--maxmemory", "100mb"]),
    startRedis(["--appendfsync", "no", "--maxmemory-policy", "allkeys-lru"]),
    startTestServer(),
  ]);
  another = createServer((request, reply) => {
    reply.writeHead(request.url?.startsWith("/readyz") ? 503 : 200, { date: new Date(Date.now() + 90_000).toUTCString() });
    reply.end(JSON.stringify(ANOTHER));
  }).listen(0, "127.0.0.1");
  const store = createPostgresStore({ url: databaseUrl(), schema });
  await store.open();
  await store.topics.put(definition(PLAIN), "api");
  await store.enqueue([newMessage(verbs(store).id())]);
  await store.close();
});
afterAll(async () => {
  await server.close();
  another.close();
  await rm(folder, { recursive: true });
  await dropSchema(schema);
});

const onPostgres = (url = databaseUrl()): Env => ({ DATABASE_URL: url, MAKEGOOD_SCHEMA: schema });
const onRedis = (url: string): Env => ({ MAKEGOOD_STORE: "redis", REDIS_URL: url });
const asked = (): Env => ({ MAKEGOOD_URL: `http://127.0.0.1:${(another.address() as AddressInfo).port}` });
const nowhere = async (): Promise<string> => `127.0.0.1:${await freePort()}`;

/** What makes a check complain, and of what. */
const COMPLAINS: Readonly<Record<string, readonly [() => Env | Promise<Env>, RegExp]>> = {
  "data dir": [() => ({ MAKEGOOD_DATA_DIR: `${file}/below` }), /set MAKEGOOD_DATA_DIR/],
  "archive dir": [() => ({ MAKEGOOD_STORE: "memory", MAKEGOOD_ARCHIVE: `file:${file}/below` }), /set MAKEGOOD_ARCHIVE/],
  retention: [
    () => ({ MAKEGOOD_STORE: "memory", MAKEGOOD_REPLAY_WINDOW_DAYS: "20" }),
    /the replay window \(20 days\) is longer than delivered are kept \(7 days\)/,
  ],
  store: [async () => onPostgres(`postgres://a:b@${await nowhere()}/c`), /ECONNREFUSED/],
  writable: [
    () => onPostgres(`${databaseUrl()}?options=${encodeURIComponent("-c default_transaction_read_only=on")}`),
    /read-only/,
  ],
  delivery: [() => onPostgres(), /test\/plain is not served: no_worker/],
  redis: [async () => onRedis(`redis://${await nowhere()}`), /ECONNREFUSED/],
  "recovery store": [
    async () => ({ ...onRedis(redis.url), DATABASE_URL: `postgres://a:b@${await nowhere()}/c` }),
    /ECONNREFUSED/,
  ],
  "streams redis": [async () => ({ ...onPostgres(), MAKEGOOD_STREAMS: "recovery", REDIS_ADDR: await nowhere() }), /ECONNREFUSED/],
  appendonly: [() => onRedis(careless.url), /no/],
  appendfsync: [() => onRedis(careless.url), /no/],
  "maxmemory-policy": [() => onRedis(careless.url), /allkeys-lru/],
  maxmemory: [() => onRedis(careless.url), /./],
  "append-only-file": [() => onRedis(careless.url), /./],
  replication: [() => onRedis(careless.url), /./],
  server: [async () => ({ MAKEGOOD_URL: `http://${await nowhere()}` }), /is `makegood serve` running there/],
  ready: [asked, /./],
  metrics: [asked, /\/metrics answers 200/],
  jobs: [asked, /no job runs by itself/],
  conservation: [asked, /^broken: gone/],
  health: [asked, /it says so/],
  clock: [asked, /\d{5} ms apart: synchronise/],
  durability: [asked, /survives/],
};

/** Made to complain by other tests of doctor, and behind PgBouncer. */
const ELSEWHERE: readonly string[] = [
  ...["bind", "tokens", "secrets", "journal dir", "leases", "receivers"],
  ...["fsync", "synchronous_commit", "full_page_writes", "connections", "autovacuum", "idle transactions", "wal", "standbys"],
  ...["replication slots", "transactions", "schema", "partitions", "drift", "indexes", "pooler"],
];

/** Asked for by its function there. */
const heldBackIn = (text: string, name: string) => name === "transactions" && text.includes("heldBack(");

/** Facts, which are never wrong. */
const FACTS: Readonly<Record<string, string>> = {
  config: "which file was read",
  sinks: "which addresses are let through",
  version: "of the server that answers; of PostgreSQL no release before 14 comes from npm",
};

it.each(Object.keys(COMPLAINS))("%s complains", async (name) => {
  const [env, why] = COMPLAINS[name] as (typeof COMPLAINS)[string];
  const { of } = await doctor(await env());
  expect(of(name), name).toMatchObject({ detail: expect.stringMatching(why) });
  expect(of(name)?.status).not.toBe("ok");
});

it("node and clocks complain of what they are told", () => {
  expect(["18.20.0", "20.18.0", "20.19.0", "22.1.0"].map((one) => examineNode(one).status)).toEqual(["fail", "fail", "ok", "ok"]);
  expect([500, 2_000, 70_000].map((ms) => clockSkew(ms, 0, 0).status)).toEqual(["ok", "warn", "fail"]);
});

it("there is no other check", async () => {
  const others = ["deployment.test.ts", "postgres.test.ts", "../pooler/pooler.test.ts"].map((name) =>
    readFileSync(join(import.meta.dirname, name), "utf8"),
  );
  expect(ELSEWHERE.filter((name) => !others.some((text) => text.includes(`"${name}"`) || heldBackIn(text, name)))).toEqual([]);
  const places: Env[] = [
    { MAKEGOOD_STORE: "memory", MAKEGOOD_JOURNAL_DIR: folder, MAKEGOOD_ARCHIVE: `file:${folder}` },
    ...[onPostgres(), onRedis(redis.url), { MAKEGOOD_URL: server.url }, { MAKEGOOD_DATA_DIR: join(folder, "none") }],
  ];
  const found: Doctored[] = [];
  for (const env of places) found.push(await doctor(env, "--sinks"));
  const known = new Set([...Object.keys(COMPLAINS), ...ELSEWHERE, ...Object.keys(FACTS), "node"]);
  const names = new Set(found.flatMap(({ checks }) => checks.map(({ name }) => name)));
  expect([...names].filter((name) => !known.has(name))).toEqual([]);
  expect(names.size).toBeGreaterThan(30);
});
