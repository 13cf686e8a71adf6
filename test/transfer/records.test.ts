/**
 * `makegood export` and `import` of a store with everything in it: recovery, audit with its evidence, and usage come along row by row, and work
 * goes on at the new place as it would have at the old one.
 */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../../src/cli/io.ts";
import { newKeyLine, parseKeys } from "../../src/evidence/notes.ts";
import { createMakegood, type Makegood, reject, topic } from "../../src/index.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { createUsage, createUsagePublishers, usageTopic } from "../../src/presets/index.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import { createPostgresStore, createPostgresUsageStore, startEmbedded } from "../../src/store/postgres/index.ts";
import { record } from "../audit/records.ts";
import { removeWorkspaces, running, workspace } from "../cli/support.ts";
import { terminal } from "../cli/terminal.ts";
import { verified } from "../evidence/support.ts";
import { databaseUrl, dropSchema, freshSchema, openStore } from "../support/postgres.ts";
import { startRedis } from "../support/redis-server.ts";
import { freshPrefix } from "../support/redis-store.ts";
import { pause } from "../unit/delivery/support.ts";
import { uuid } from "../usage/scene.ts";

const OPS = { actor: "ops", actorType: "human" } as const;
const TOTAL = { name: "total", limitCredits: 1_000_000 };
const RULE = {
  id: "vendor",
  name: "The vendor knows",
  priority: 95,
  condition: { code: { is: ["E_VENDOR"] } },
  action: "skip_task",
  score: 0.9,
};
const keys = parseKeys(newKeyLine(systemRandom));

async function until(what: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000;
  while (!(await what())) {
    if (performance.now() > end) expect.fail(`not within 20 s: ${what.toString()}`);
    await pause(20);
  }
}

/** A process with a receiver that answers as it is told, and the preset of usage. */
async function open(url: string, schema: string) {
  let answer: { code: string; text: string } | null = null;
  const shop = topic<{ n: number }>("shop/a", {
    sink: () => (answer === null ? undefined : reject(answer.text, { code: answer.code })),
  });
  const spent = usageTopic({ publishers: createUsagePublishers({ ledger: { publishUsage: () => {} } }) });
  const store = createPostgresStore({ url, schema });
  const mg: Makegood = await createMakegood({ store, topics: [shop, spent], pollMs: 20, evidence: { keys } });
  const usage = await createUsage({ mg, store: createPostgresUsageStore({ url, schema }), topic: spent });
  const recovery = mg.recovery as Recovery;
  let sent = 0;
  const groupOf = async (code: string) => (await recovery.groups({ limit: 100 })).data.find((one) => one.errorCode === code);
  return {
    ...{ mg, store, usage, recovery, groupOf },
    answers: (now: typeof answer) => {
      answer = now;
    },
    /** Lets so many die, waits until they are counted, and returns their group. */
    async die(code: string, count: number) {
      answer = { code, text: `${code} came back from the vendor` };
      const before = (await groupOf(code))?.occurrenceCount ?? 0;
      const messages = Array.from({ length: count }, () => ({
        payload: { n: sent++ },
        key: `${code}-${randomBytes(4).toString("hex")}`,
      }));
      await mg.enqueueMany(shop, messages);
      await until(async () => ((await groupOf(code))?.occurrenceCount ?? 0) >= before + count);
      const group = await groupOf(code);
      await until(async () => (await recovery.group(group?.groupId as number)).candidate?.evaluationStatus === "evaluated");
      return group?.groupId as number;
    },
    async close() {
      await usage.close();
      await mg.close();
      await store.close();
    },
  };
}

type Place = Awaited<ReturnType<typeof open>>;

async function fill(place: Place): Promise<void> {
  const { recovery, mg, usage, store } = place;
  mg.work();
  await recovery.putRule(RULE.id, JSON.stringify(RULE), 0, OPS);
  const healed = await place.die("E_HEALS", 3);
  place.answers(null);
  const { redrive } = await recovery.startRedrive({ select: { groupId: healed }, reason: "the vendor is back", canary: 0 }, OPS);
  await until(async () => (await recovery.redrive(redrive.redriveId)).status === "done");
  const copied = await place.die("E_COPIED", 1);
  place.answers(null);
  const select = { groupId: copied };
  const copy = await recovery.startRedrive({ select, mode: "new_key", reason: "under a new key", canary: 0 }, OPS);
  await until(async () => (await recovery.redrive(copy.redrive.redriveId)).status === "done");
  const vendor = await place.die("E_VENDOR", 2);
  const { candidate } = await recovery.group(vendor);
  await recovery.approve(candidate?.candidateId as number, OPS);
  const other = await place.die("E_OTHER", 1);
  await recovery.merge(vendor, [other], "the same vendor", OPS);
  await recovery.ingest(
    {
      ...{ failureMatchId: null, idempotencyKey: "r-1", source: "api", topic: null, sink: null, errorCode: "E_REPORT" },
      ...{ errorMessage: "from outside", stackTrace: null, skillId: null, tenantId: "t", failurePayload: '{"a":1e400}' },
      enqueueEvaluation: false,
    },
    OPS,
  );
  for (const id of ["e-1", "e-2", "e-3"]) await store.audit.write(record(id));
  await store.audit.hold({ eventId: "e-3" }, { actor: "ops", reason: "a case" });
  const turn = {
    tenantId: uuid(),
    userId: uuid(),
    turnId: uuid(),
    requestId: uuid(),
    chatId: uuid(),
    policyVersion: "1",
    model: "m",
  };
  const costs = {
    period: "2026-11",
    estimatedInputTokens: 10,
    outputTokensMax: 20,
    generationFloorTokens: 5,
    inputRate: 3_000,
    outputRate: 15_000,
  };
  await usage.reserve({ ...turn, ...costs, buckets: [TOTAL] });
  await usage.finalize({ ...turn, outcome: "aborted" });
  await usage.reserve({ ...turn, turnId: uuid(), requestId: uuid(), ...costs, buckets: [TOTAL] });
  await until(async () => (await store.counts()).every(({ status }) => status !== "processing" && status !== "pending"));
  await mg.evidence?.seal();
  await mg.evidence?.erase({ eventId: "e-2", actor: "ops", reason: "asked for" });
  // Not sealed when it is moved.
  await store.audit.write(record("e-4"));
}

/** What a store has beside what is moved, and why that is not. */
const STAYS: Readonly<Record<string, readonly string[]>> = {
  "moved as messages and topics": [
    "topic",
    "lane",
    "lane_idle",
    "message",
    "message_kept",
    "dedupe",
    "ready",
    "ready_ordered",
    "order_lock",
  ].concat(["held", "attempt", "dead_letter"]),
  "of one process or one moment": ["starts", "waiter", "lease", "leader", "led_write", "worker", "slot", "installation"],
  "what was applied": ["migration", "migration_usage"],
  "counted anew by triggers": ["recovery_open", "recovery_tally"],
  "what waits for sealing there": ["evidence_pending"],
  "counted anew as accepted there": [
    "conservation",
    "conservation_pass",
    "conservation_bucket",
    "conservation_open",
    "conservation_seal",
  ].concat(["conservation_day", "conservation_divergence"]),
  "what retention took is of the place that it left": ["archive_chunk", "retention_jobs"],
};

/** Every table of the schema, as JSON texts: past the seam that moved them. */
async function tablesOf(url: string, schema: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`set timezone = 'UTC'; set search_path = "${schema}"`);
  const rowsOf = async (from: string, columns = "t.*") => {
    const { rows } = await client.query(
      `select row_to_json(r)::text as j from ${from} t cross join lateral (select ${columns}) r`,
    );
    return rows.map(({ j }: { j: string }) => j).sort();
  };
  const { rows } = await client.query(
    `select relname from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`,
    [schema],
  );
  const stays = new Set(Object.values(STAYS).flat());
  const found: Record<string, string[]> = {};
  for (const { relname } of rows as { relname: string }[]) if (!stays.has(relname)) found[relname] = await rowsOf(relname);
  // Of one that was replayed the attempts are those of its message, which moves by itself.
  const attempts = "case when t.resolution < 3 then t.attempts end as attempts";
  found.dead_letter = await rowsOf("dead_letter", `t.id, t.resolution, ${attempts}, t.group_id, t.ingested_attempts`);
  // Open messages of a group and of those merged into it are counted in two places, which a job makes one.
  const changes =
    "select sum(n) from recovery_open o join recovery_group m on m.id = o.group_id where coalesce(m.merged_into, m.id) = t.id";
  const open = `t.open + coalesce((${changes}), 0) as open`;
  const group = "t.id, t.fingerprint, t.match_id, t.occurrences, t.version, t.merged_into, t.reports, t.last_at, t.cause";
  found.recovery_group = await rowsOf("recovery_group", `${group}, ${open}`);
  // How many groups are open is told once that job ran.
  const tally = "(select name, sum(n) as n from recovery_tally where name <> 'open' group by name having sum(n) <> 0)";
  found.recovery_tally = await rowsOf(tally);
  await client.end();
  return found;
}

/** Of a release before, of Redis beside, and what was copied outside: nothing here has them. */
const EMPTY = ["evidence_anchor", "recovery_mirror", "recovery_outcome"];
/** Where notes were copied to is of each place. */
const anchorless = ({ evidence_anchor: _, ...rest }: Record<string, string[]>) => rest;
const schemas: string[] = [];
let folder: string;
let file: string;
let before: Awaited<ReturnType<typeof tablesOf>>;
beforeAll(async () => {
  folder = await workspace({ prepared: true });
  file = join(folder, "all.ndjson");
  const server = await startEmbedded({ dataDir: join(folder, ".makegood") });
  const place = await open(server.url, "makegood");
  await fill(place);
  await place.close();
  before = await tablesOf(server.url, "makegood");
  await server.close();
  const out = await terminal(["export", file, "--all", "--secrets"], { env: { MAKEGOOD_DATA_DIR: join(folder, ".makegood") } });
  expect([out.code, out.stderr]).toEqual([0, ""]);
}, 120_000);
afterAll(async () => {
  for (const schema of schemas) await dropSchema(schema);
  await removeWorkspaces();
});

const fresh = () => {
  const schema = freshSchema();
  schemas.push(schema);
  return { schema, env: { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema } };
};

describe("records of a store", { timeout: 60_000 }, () => {
  it("come along row by row, and work goes on: groups, rules, numbers, evidence, quota, conservation", async () => {
    const { schema, env } = fresh();
    const done = await terminal(["import", file, "--json"], { env });
    expect([done.code, done.stderr, JSON.parse(done.stdout)]).toMatchObject([0, "", { whole: true }]);
    const after = await tablesOf(databaseUrl(), schema);
    expect(anchorless(after)).toEqual(anchorless(before));
    expect(
      Object.entries(before)
        .filter(([, all]) => all.length === 0)
        .map(([name]) => name),
    ).toEqual(EMPTY);

    const place = await open(databaseUrl(), schema);
    const evidence = place.mg.evidence as NonNullable<typeof place.mg.evidence>;
    expect(await verified(evidence)).toMatchObject({ findings: [], broken: 0, erased: 1, unsealed: 1 });
    place.mg.work();
    const known = await place.groupOf("E_VENDOR");
    expect(await place.die("E_VENDOR", 1)).toBe(known?.groupId);
    const { candidate } = await place.recovery.group(known?.groupId as number);
    expect(candidate).toMatchObject({ selectedAction: RULE.action });
    expect(await place.die("E_NEW", 1)).toBeGreaterThan(known?.groupId as number);
    await place.store.audit.write(record("e-5"));
    await evidence.seal();
    expect(await verified(evidence)).toMatchObject({ findings: [], broken: 0, unsealed: 0 });
    expect(await place.usage.verify()).toEqual([]);
    await place.store.conservation.pass({ reach: "full" });
    expect(await place.store.conservation.conclude({})).toMatchObject({ state: "whole" });
    await place.close();
    // Made again after work went on: nothing is put, nothing is lost.
    const again = JSON.parse((await terminal(["import", file, "--json"], { env })).stdout) as {
      whole: boolean;
      records: { put: number }[];
    };
    expect([again.whole, again.records.reduce((sum, { put }) => sum + put, 0)]).toEqual([true, 0]);
  });

  it("an import that is killed at any table and made again ends with the same rows", async () => {
    const { schema, env } = fresh();
    await (await openStore({ schema })).close();
    for (const table of ["recovery_occurrence", "dead_letter"]) {
      const holder = new pg.Client({ connectionString: databaseUrl() });
      await holder.connect();
      await holder.query(`begin; lock table "${schema}".${table} in exclusive mode`);
      const run = await running(folder, ["import", file, "--json"], env);
      const waits = "select 1 from pg_locks where relation = $1::regclass and not granted";
      await until(
        async () => (await holder.query(waits, [`"${schema}".${table}`])).rows.length > 0 || run.child.exitCode !== null,
      );
      expect([table, run.child.exitCode]).toEqual([table, null]);
      await run.stop("SIGKILL");
      await holder.end();
    }
    const end = await terminal(["import", file, "--json"], { env });
    expect([end.code, JSON.parse(end.stdout)]).toMatchObject([0, { whole: true }]);
    expect(anchorless(await tablesOf(databaseUrl(), schema))).toEqual(anchorless(before));
  });

  it("have no home in Redis: that is said before anything is written, and --without leaves them out", async () => {
    const redis = await startRedis();
    const env = { MAKEGOOD_STORE: "redis", REDIS_URL: redis.url, MAKEGOOD_REDIS_PREFIX: freshPrefix() };
    const told = await terminal(["import", file], { env });
    expect([told.code, told.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/recovery, audit, usage.*no home.*--without recovery,audit,usage/),
    ]);
    expect((await terminal(["import", file, "--without", "recovery,audit"], { env })).stderr).toMatch(
      /holds usage, and a redis store/,
    );
    expect((await terminal(["topics", "list", "--json"], { env })).stdout).not.toContain("shop/a");
    const done = JSON.parse((await terminal(["import", file, "--without", "recovery,audit,usage", "--json"], { env })).stdout);
    expect(done).toMatchObject({ whole: true, records: [], topics: { made: expect.arrayContaining(["shop/a"]) } });
    expect((await terminal(["import", file, "--without", "rules"], { env })).stderr).toContain("rules is none of");
  });

  it("go only where there are none of another store, and nothing is written where there are", async () => {
    const { schema, env } = fresh();
    const store = await openStore({ schema });
    await store.audit.write(record("other"));
    await store.close();
    const told = await terminal(["import", file], { env });
    expect([told.code, told.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/1 rows of its own in audit_event.*nothing was written/),
    ]);
    expect((await tablesOf(databaseUrl(), schema)).recovery_group).toEqual([]);
    // Without audit there is no proof to carry: what came is sealed there.
    const done = JSON.parse((await terminal(["import", file, "--without", "audit", "--json"], { env })).stdout);
    expect(done).toMatchObject({ whole: true });
    const place = await open(databaseUrl(), schema);
    await place.mg.evidence?.seal();
    expect(await verified(place.mg.evidence as NonNullable<typeof place.mg.evidence>)).toMatchObject({
      findings: [],
      unsealed: 0,
    });
    await place.close();
  });

  it("a file of the format before is read, and one of a later format is not", async () => {
    const { env } = fresh();
    const old = fileURLToPath(new URL("./format-1.ndjson", import.meta.url));
    expect(JSON.parse((await terminal(["import", old, "--json"], { env })).stdout)).toMatchObject({
      messages: 13,
      whole: true,
      records: [],
    });
    const later = join(folder, "later.ndjson");
    await writeFile(later, (await readFile(old, "utf8")).replace('"makegood_export":1', '"makegood_export":3'));
    expect((await terminal(["import", later], { env })).stderr).toMatch(
      /format 3, and this version reads 1 and 2; nothing was written/,
    );
  });
});
