/**
 * What doctor says of the machine, of topics, of a server that runs, and its checklists: each failing for real and passing.
 */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { startTestServer } from "../server/support.ts";
import { startableDist } from "../support/build.ts";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { startShell } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { DURABLE, type RedisServer, startRedis } from "../support/redis-server.ts";
import { doctor, failing, warning, well } from "./support.ts";

const schema = freshSchema();
const env = { DATABASE_URL: "", MAKEGOOD_SCHEMA: schema };
/** Where no store is the point. */
const quick = { MAKEGOOD_STORE: "memory" };
let folder = "";

beforeAll(async () => {
  env.DATABASE_URL = databaseUrl();
  folder = await mkdtemp(join(tmpdir(), "makegood-doctor-"));
  const store = createPostgresStore({ url: databaseUrl(), schema });
  await store.open();
  await store.close();
});
afterAll(async () => {
  await dropSchema(schema);
  await rm(folder, { recursive: true, force: true });
});

const sql = (text: string, values: unknown[] = []) =>
  withClient((client) => client.query(text.replaceAll("S.", `"${schema}".`), values));
/** As another program or an earlier version might have written it. */
const putTopic = (name: string, definition: object) =>
  sql(`insert into S.topic (name, definition, source) values ($1, $2, 'api')`, [
    name,
    JSON.stringify({
      name,
      retry: {},
      schemaVersion: null,
      leaseMs: 30_000,
      concurrency: null,
      tenantConcurrency: null,
      ordering: "none",
      ...definition,
    }),
  ]);

describe("the machine", () => {
  it("who can reach it: a server that others reach wants a name, which a proxy that ends TLS has", async () => {
    const open = { ...quick, MAKEGOOD_HOST: "0.0.0.0", MAKEGOOD_TOKENS_FILE: join(folder, "tokens") };
    await writeFile(open.MAKEGOOD_TOKENS_FILE, "operator:0123456789abcdef", { mode: 0o600 });
    expect((await doctor(open)).of("bind")).toMatchObject(warning(/not encrypted/));
    expect((await doctor({ ...open, MAKEGOOD_HOSTS: "makegood.example" })).of("bind")).toMatchObject(well);
    expect((await doctor(quick)).of("bind")).toMatchObject(well);
    const bare = await doctor({ ...open, MAKEGOOD_TOKENS_FILE: "", MAKEGOOD_TOKENS: "operator:0123456789abcdef" });
    expect(bare.of("secrets")).toMatchObject(warning(/MAKEGOOD_TOKENS is in the environment/));
    expect(JSON.stringify(bare)).not.toContain("0123456789abcdef");
  });

  it("tokens that end within two weeks, or have ended", async () => {
    const day = (ahead: number) => new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10);
    const tokens = (expires: string) => doctor({ ...quick, MAKEGOOD_TOKENS: `ann:0123456789abcdef;expires=${expires}` });
    expect((await tokens(day(30))).of("tokens")).toMatchObject(well);
    expect((await tokens(day(3))).of("tokens")).toMatchObject(warning(/^the token ann expires at .*rotate-keys-and-tokens/));
    expect((await tokens(day(-3))).of("tokens")).toMatchObject(warning(/^the token ann expired at /));
  });

  it("files of secrets that other users read, or even change", async () => {
    const path = join(folder, "url");
    await writeFile(path, databaseUrl());
    const secret = async (mode: number) => {
      await chmod(path, mode);
      return (await doctor({ ...quick, DATABASE_URL_FILE: path })).of("secrets");
    };
    expect(await secret(0o644)).toMatchObject(warning(/DATABASE_URL_FILE can be read by every user/));
    expect(await secret(0o646)).toMatchObject(failing(/DATABASE_URL_FILE can be changed by every user/));
    expect(await secret(0o640)).toMatchObject(well);
  });

  it("a journal on a disk that is full, at a place that cannot be written, and where there is room", async () => {
    const journal = (path: string) => doctor({ ...quick, MAKEGOOD_JOURNAL_DIR: path });
    expect((await journal(`${folder}/url/below-a-file`)).of("journal dir")).toMatchObject(failing(/set MAKEGOOD_JOURNAL_DIR/));
    expect((await journal(folder)).of("journal dir")).toMatchObject({ detail: expect.stringMatching(/GiB free$/) });
    // A file system of 64 KiB in a namespace of its own, filled.
    const full = `mkdir -p "$1" && mount -t tmpfs -o size=64k none "$1" && (head -c 1M /dev/zero > "$1/all" || true) && exec "$2" "$3" doctor --json`;
    const stage = `exec unshare --mount --propagation private ${process.geteuid?.() === 0 ? "" : "--user --map-root-user"} sh -c '${full}' sh "$0" "$@"`;
    const set = `export MAKEGOOD_STORE=memory MAKEGOOD_JOURNAL_DIR="$0"; ${stage}`;
    const child = await startShell(set, [join(folder, "full"), process.execPath, join(await startableDist(), "cli/main.js")]);
    await child.ended;
    const told = child.facts.find(({ checks }) => checks !== undefined) as { checks: { name: string }[] } | undefined;
    expect(
      told?.checks.find(({ name }) => name === "journal dir"),
      child.stderr(),
    ).toMatchObject(failing(/full$/));
  }, 60_000);
});

describe("topics", () => {
  afterAll(() => sql("truncate S.topic cascade"));

  it("an attempt that may outlast its lease", async () => {
    expect((await doctor(env)).of("leases")).toMatchObject(well);
    await putTopic("slow/hook", { leaseMs: 5_000, sink: { kind: "http", url: "http://127.0.0.1:9/", timeoutMs: 15_000 } });
    expect((await doctor(env)).of("leases")).toMatchObject(failing(/slow\/hook: timeout 15000 must be at most/));
    await sql("truncate S.topic cascade");
  });

  it("--sinks: receivers that answer, that do not, that may not be asked, that have no name; and only when asked", async () => {
    const receiver = await startReceiver();
    await putTopic("near/hook", { sink: { kind: "http", url: receiver.url } });
    const local = { ...env, MAKEGOOD_SINK_ALLOW: "127.0.0.0/8" };
    expect((await doctor(local)).of("receivers")).toBeUndefined();
    expect((await doctor(local, "--sinks")).of("receivers")).toMatchObject({ status: "ok", detail: "1 can be reached" });
    await putTopic("gone/hook", { sink: { kind: "http", url: `http://127.0.0.1:${await freePort()}/` } });
    await putTopic("private/hook", { sink: { kind: "http", url: "http://10.99.0.1/" } });
    await putTopic("nameless/hook", { sink: { kind: "http", url: "http://nowhere.invalid/" } });
    const details = (await doctor(local, "--sinks")).checks
      .filter(({ name }) => name === "receivers")
      .map(({ detail }) => detail);
    expect(details.sort()).toEqual([
      expect.stringMatching(/10\.99\.0\.1 \(private\/hook\): .*private address/),
      expect.stringMatching(/127\.0\.0\.1:\d+ \(gone\/hook\): .*ECONNREFUSED/),
      expect.stringMatching(/nowhere\.invalid \(nameless\/hook\): .*(ENOTFOUND|EAI_AGAIN)/),
    ]);
  }, 60_000);
});

describe("checklists", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis([...DURABLE, "--maxmemory", "100mb"]);
  });
  const items = async (more: Record<string, string>, profile: string) => {
    const { code, checks } = await doctor(more, "--profile", profile);
    return { code, failed: checks.filter(({ status }) => status === "fail").map(({ name }) => name) };
  };

  it("FIN-6: shadow passes on a Redis whose append-only file was verified, and on nothing else", async () => {
    const on = (one: RedisServer) => ({ MAKEGOOD_STORE: "redis", REDIS_URL: one.url });
    const url = on(redis);
    expect(await items(url, "shadow")).toEqual({ code: 0, failed: [] });
    expect((await items(quick, "shadow")).failed).toContain("Redis answers");
    await redis.ask("CONFIG", "SET", "appendonly", "no");
    expect(await items(url, "shadow")).toEqual({ code: 1, failed: ["its append-only file is on, synced and written"] });
    await redis.ask("CONFIG", "SET", "appendonly", "yes");
    await redis.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    expect((await items(url, "shadow")).failed).toEqual(["it evicts nothing"]);
    await redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction");
    const silent = await startRedis([
      ...DURABLE,
      "--maxmemory",
      "100mb",
      "--rename-command",
      "CONFIG",
      "",
      "--rename-command",
      "INFO",
      "",
    ]);
    const attest = { MAKEGOOD_REDIS_ATTEST: "appendonly=yes,appendfsync=everysec,maxmemory-policy=noeviction" };
    expect((await items({ ...on(silent), ...attest }, "shadow")).code).toBe(1);
  });

  it("REC-45: pre, deploy and post, with the command that shows each item", async () => {
    expect(await items({ ...env, REDIS_URL: redis.url }, "pre")).toEqual({ code: 0, failed: [] });
    expect((await items({ ...env, MAKEGOOD_SCHEMA: `${schema}_absent` }, "pre")).failed).toEqual([
      "the schema is migrated and as made",
    ]);
    const server = await startTestServer({}, { store: createPostgresStore({ url: databaseUrl(), schema }) });
    const url = { MAKEGOOD_URL: server.url };
    expect(await items(url, "deploy")).toEqual({ code: 0, failed: [] });
    await server.mg.verify.run({ reach: "whole" });
    const post = await doctor(url, "--profile", "post");
    expect(post.code).toBe(0);
    const shown = post.checks.filter(({ detail }) => !/curl|deploy\/|docs\/|makegood /.test(detail)).map(({ name }) => name);
    expect(shown).toEqual(["refresh of mv_top_pending"]);
    expect((await doctor(url, "--profile", "live")).code).toBe(0);
    await server.close();
    expect((await items(url, "deploy")).failed).toContain("it is ready");
    expect((await doctor(url, "--profile", "live")).code).toBe(1);
  });
});
