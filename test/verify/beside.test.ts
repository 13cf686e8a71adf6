/** Places beside the store, through `makegood verify`: archive files that were cut off, and dead letters that stand in a Redis stream only. */
import { mkdtemp, readdir, rename, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createIds } from "../../src/platform/ids.ts";
import { archiveDead, connectRedis, type RedisPort } from "../../src/store/redis/index.ts";
import { DELIVERED, dead, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { terminal } from "../cli/terminal.ts";
import { provenanceRows, retentionScene } from "../maintenance/scene.ts";
import { databaseUrl } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { type VerifyScene, verifyScene } from "./scene.ts";

describe("the archive", () => {
  it("a file that was cut off, changed or taken away is named; what is kept elsewhere is not proven", async () => {
    const folder = await mkdtemp(join(tmpdir(), "makegood-archive-"));
    await using scene = await retentionScene({ archive: `file:${folder}` });
    await provenanceRows(scene, 2_500, 91);
    await scene.mg.jobs.run("retire-provenance");
    await scene.mg.jobs.run("ship-archive");
    const verify = (...more: string[]) =>
      terminal(["verify", ...more], { env: { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: scene.schema } });
    expect(await verify()).toMatchObject({ code: 0, stderr: "" });
    const [first, second, third] = (await readdir(folder)).sort().map((name) => join(folder, name)) as [string, string, string];
    await truncate(second, 40);
    const cut = await verify();
    expect(cut.code).toBe(1);
    expect(cut.stdout).toContain("conservation is broken: 1000 messages do not add up");
    expect(cut.stderr).toMatch(/^\narchive_damaged: 1000\n {2}what retention archived cannot be read back/);
    expect(cut.stderr).toContain(`${second}: it cannot be unpacked`);
    await rm(third);
    const [found] = JSON.parse((await verify("--json")).stdout).divergences;
    expect(found).toMatchObject({ kind: "archive_damaged", count: 1_500, detail: expect.stringContaining(third) });
    expect(found.detail).toContain(second);
    expect(found.detail).not.toContain(first);
    // Slices keep what another look has found.
    await scene.mg.verify.run({ reach: "slice", budgetMs: 100 });
    expect(await scene.mg.verify.last()).toMatchObject({ state: "broken", divergencesTotal: 1_500 });
    await rename(folder, `${folder}-elsewhere`);
    const away = await verify();
    expect(away).toMatchObject({ code: 5, stdout: expect.stringContaining("its directory is not on this machine") });
    await rm(`${folder}-elsewhere`, { recursive: true });
  });

  it("is looked at in parts by slices, and each part only replaces what was found in it", async () => {
    await using scene = await retentionScene();
    await scene.sql(`do $$ declare chain text := ''; sum text; line text; begin for i in 1..250 loop
      line := format(E'{"n":%s}\\n', i);
      sum := encode(sha256(convert_to(line, 'UTF8')), 'hex');
      chain := encode(sha256(convert_to(chain || sum, 'UTF8')), 'hex');
      insert into archive_chunk (class, rows, bytes, first_id, last_id, sha256, chain, place, body) values ('provenance', 1, 9, i, i, sum, chain, 'table', line);
    end loop; end $$`);
    const change = (from: string, to: string) =>
      scene.sql(
        `set session_replication_role = replica; update archive_chunk set body = replace(body, '${from}', '${to}') where id in (1, 201)`,
      );
    await change("n", "m");
    const total = async () => (await scene.mg.verify.run({ reach: "slice", budgetMs: 100 })).divergencesTotal;
    expect([await total(), await total(), await total(), await total()]).toEqual([1, 1, 2, 2]);
    await change("m", "n");
    expect([await total(), await total(), await total()]).toEqual([2, 1, 0]);
  });
});

describe("a dead letter in a stream only", () => {
  const DEAD = "m10:evaluate:dead-letter";
  const ids = createIds();
  let server: RedisServer;
  let redis: RedisPort;
  let scene: VerifyScene;
  beforeAll(async () => {
    server = await startRedis();
    redis = await connectRedis(server.url);
    scene = await verifyScene();
  });
  beforeEach(async () => {
    await server.ask("FLUSHALL");
    await scene.empty();
  });
  afterAll(async () => {
    await redis.close();
    await scene.close();
  });

  const verify = (url = server.url) => {
    const streams = { MAKEGOOD_STREAMS: "recovery", REDIS_URL: url };
    return terminal(["verify", "--json"], { env: { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: scene.schema, ...streams } });
  };
  const add = (id: string, fields: Record<string, string>) =>
    redis.send(DEAD, ["XADD", DEAD, id, ...Object.entries(fields).flat()]);
  const copyOf = (id: string) => ({ id, topic: PLAIN, generation: "0", last_code: "refused" });

  it("is found and named: a copy whose original is gone, and what was refused and never archived", async () => {
    const died = await scene.accept(2, { tenantId: "a" });
    await scene.settle(await scene.claim(2), dead());
    const day = Date.now() - 86_400_000;
    const refused = {
      dead_code: "invalid",
      dead_reason: "no",
      dead_stream: "m10:evaluate:stream",
      dead_id: "1-0",
      priority: "3",
    };
    const entry = String(await add(`${day}-7`, refused));
    for (const id of died) await add("*", copyOf(id));
    const worked = { redis, stream: DEAD, store: scene.store, ids, actor: "test" };
    await archiveDead(worked);
    await scene.verify();
    const whole = await verify();
    expect(JSON.parse(whole.stdout)).toMatchObject({ state: "whole", divergences: [] });
    const lost = ids();
    await add("*", copyOf(lost));
    await scene.harm("delete from dead_letter where id in (select id from message where key is not null)");
    await scene.harm("delete from message where key is not null");
    const report = JSON.parse((await verify()).stdout);
    const found = report.divergences.find(({ kind }: { kind: string }) => kind === "stream_only");
    expect(found).toMatchObject({
      count: 2,
      detail: expect.stringContaining(`${DEAD}: `),
      remedy: expect.stringContaining("streams archive"),
    });
    expect(found.ids.sort()).toEqual([entry, lost].sort());
  });

  it("is none when retention took the original, and Redis away is not proven", async () => {
    const [gone] = await scene.accept(1);
    await scene.settle(await scene.claim(1), DELIVERED);
    await scene.verify();
    await scene.store.prune({ keptMs: 1_000, limit: 10, now: new Date(Date.now() + 3 * 86_400_000) });
    await add("*", copyOf(gone!));
    expect(JSON.parse((await verify()).stdout)).toMatchObject({ state: "whole", divergences: [] });
    const away = await verify("redis://127.0.0.1:9");
    expect(JSON.parse(away.stdout)).toMatchObject({ state: "unknown", reason: expect.stringContaining("stream recovery: ") });
    expect(away.code).toBe(5);
  });
});
