/**
 * Recovery on a database of the version before, with rows in it: what was counted is counted, what was learned stays where it is, and redrives
 * that were under way go on, also one that a process of the version before started after the upgrade.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEvents } from "../../src/observe/events.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { hold, partsOf, work } from "../../src/recovery/redrive/claimed-redrive.ts";
import { REDRIVE_DEFAULTS } from "../../src/recovery/redrive/request.ts";
import { createConnection, migrateUp } from "../../src/store/postgres/index.ts";
import { KERNEL_SET } from "../../src/store/postgres/migrate.ts";
import { daysAround, ensurePartitions } from "../../src/store/postgres/partitions.ts";
import { DELIVERED } from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";
import { databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

const BEFORE = 18;
const STEPS_MAX = 300;
const schema = freshSchema();
const ids = createIds(systemClock);
let store: Awaited<ReturnType<typeof openStore>>;

const sql = (text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
  withClient(async (client) => (await client.query(text.replaceAll("$s", `"${schema}"`), values)).rows);

/** Dead letters of group 2, which was merged into group 1. */
async function die(count: number): Promise<string[]> {
  const rows = await sql(
    `with m as (insert into $s.message (id, lane_id, payload) select $s.next_id(), l.id, '{}' from $s.lane l, generate_series(1, $1) returning id, lane_id)
      insert into $s.dead_letter (id, lane_id, attempts, code, error, ingested_attempts, group_id)
      select id, lane_id, 5, 'http_503', 'took 7 ms', 5, 2 from m returning id`,
    [count],
  );
  return rows.map(({ id }) => id as string);
}

interface Old {
  readonly canary: number;
  readonly status?: string;
  readonly state?: object;
  /** Of its ten messages the first so many. */
  readonly healed?: number;
  readonly failed?: number;
}

/** A redrive over ten dead letters, in the columns that it had. */
async function redrive({ canary, status = "running", state, healed = 0, failed = 0 }: Old): Promise<string> {
  const [id, messages] = [ids(), await die(10)];
  const plan = JSON.stringify({ ...REDRIVE_DEFAULTS, canary });
  await sql(
    `insert into $s.redrive (id, request_hash, status, mode, action, actor, reason, selection, plan, state, created_at, started_at, selected, waiting, healed, failed)
      values ($1, 'h', $2, 'replay', 'retry_exponential', 'ann', 'the receiver is back', '{"limit":100,"generationMax":10}', $3, $4, now(), now(), 10, $5, $6, $7)`,
    [id, status, plan, state ? JSON.stringify(state) : null, 10 - healed - failed, healed, failed],
  );
  await sql(
    `insert into $s.redrive_item (redrive_id, n, message_id, generation, revision, group_id, state)
      select $1, x.n, d.id, d.generation, d.revision, d.group_id, case when x.n <= $3 then 2 when x.n <= $3 + $4 then 3 else 0 end
      from unnest($2::uuid[]) with ordinality x(id, n) join $s.dead_letter d on d.id = x.id`,
    [id, messages, healed, failed],
  );
  return id;
}

const RAMPS = { tokens: 1, atMs: 0, rampMs: 1, lastSentMs: 0, base: { sent: 0, healed: 0, failed: 0 }, stopped: false };
const redrives: Record<string, string> = {};

beforeAll(async () => {
  const connection = createConnection({ url: databaseUrl() });
  await connection.open();
  await migrateUp(connection, schema, { ...KERNEL_SET, migrations: KERNEL_SET.migrations.slice(0, BEFORE) });
  await ensurePartitions(connection, `"${schema}"`, daysAround(Date.now()));
  await connection.close();
  const definition = JSON.stringify({ ordering: "none", schemaVersion: 1 });
  await sql("insert into $s.topic (name, definition, source) values ('old/one', $1, 'api')", [definition]);
  await sql("insert into $s.lane (topic_id) select id from $s.topic");
  await sql(`insert into $s.recovery_group (fingerprint, match_id, topic, sink, code, template, occurrences, first_at, last_at)
    select 'f' || n, 'm' || n, 'old/one', 'function', 'http_503', 'took <num> ms', 30, now(), now() from generate_series(1, 2) n`);
  await sql("update $s.recovery_group set merged_into = 1, occurrences = 0 where id = 2");
  await sql("insert into $s.recovery_match select 'm' || n, n from generate_series(1, 2) n");
  await sql(`insert into $s.recovery_occurrence (group_id, at, request_key, hash, source, code, text)
    values (1, now(), 'report:r-1', gen_random_uuid(), 'api', 'http_503', 'took 7 ms')`);
  await sql(
    `insert into $s.recovery_candidate (group_id, round, created_at, updated_at, group_version) values (1, 1, now(), now(), 1)`,
  );
  await sql(
    `insert into $s.recovery_document (kind, id, version, text, actor, at) values ('rule', 'r-1', 1, '{}', 'ann', now())`,
  );
  Object.assign(redrives, {
    begun: await redrive({ canary: 3 }),
    withoutCanary: await redrive({ canary: 0 }),
    ramping: await redrive({ canary: 3, state: RAMPS, healed: 4 }),
    judged: await redrive({ canary: 3, healed: 3 }),
    resumed: await redrive({ canary: 3, state: { ...RAMPS, rampMs: null, stopped: true }, failed: 5 }),
    resumedAndClaimed: await redrive({
      ...{ canary: 3, failed: 5, state: { ...RAMPS, rampMs: null, base: { sent: 5, healed: 0, failed: 5 } } },
    }),
    workedOnByTheVersionBefore: await redrive({ canary: 3 }),
    planned: await redrive({ canary: 0, status: "planned" }),
    stopped: await redrive({ canary: 3, status: "stopped", failed: 3 }),
  });
  store = await openStore({ schema });
  await sql("update $s.redrive_item set state = 2 where redrive_id = $1 and n <= 3", [redrives.workedOnByTheVersionBefore]);
  await sql("update $s.redrive set waiting = 7, healed = 3 where id = $1", [redrives.workedOnByTheVersionBefore]);
  redrives.startedByTheVersionBefore = await redrive({ canary: 3 });
  redrives.stoppedByTheVersionBefore = await redrive({ canary: 3, status: "stopped", failed: 3 });
});

afterAll(async () => {
  await store.close();
  await dropSchema(schema);
});

/** What is due is delivered. */
async function deliver(): Promise<void> {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 1_000 }));
  if (lanes.length > 0) await store.settle(settles(await store.claim({ owner: "worker", leaseMs: 30_000, lanes }), DELIVERED));
}

/** One process's runner, whose clock is moved by hand, until nothing is left to do. */
async function runAll(): Promise<void> {
  const deps = { recovery: store.recovery, store, events: createEvents(), ids, clock: systemClock, owner: "new" };
  const parts = partsOf({ ...deps, serves: () => true, checkPayload: () => {} });
  const { redrives: records } = store.recovery;
  let nowMs = Date.now();
  for (let claim = await records.claim("new", 0); claim !== null; claim = await records.claim("new", 0)) {
    const held = hold(parts, claim, nowMs);
    let goesOn = true;
    for (let step = 0; goesOn; step++) {
      expect(step, JSON.stringify(await records.get(held.id))).toBeLessThan(STEPS_MAX);
      goesOn = await work(held, nowMs);
      await deliver();
      nowMs += 250;
    }
  }
}

describe("recovery on a database of the version before", () => {
  it("what was there is counted and can be read", async () => {
    const { groups, openGroups, occurrences, decisions, outcomes } = await store.recovery.stats([]);
    expect({ groups, openGroups, occurrences, decisions, outcomes }).toEqual({
      ...{ groups: 1, openGroups: 1, occurrences: 30, outcomes: [] },
      decisions: { pending: 1, approved: 0, rejected: 0 },
    });
    const group = await store.recovery.groupOf({ failureMatchId: "m2" });
    expect(group).toMatchObject({ groupId: 1, openMessages: 110, occurrenceCount: 30 });
    expect((await store.recovery.groups({ limit: 10, open: true })).data).toEqual([group]);
    expect((await store.recovery.candidates({ limit: 10, current: true })).data).toHaveLength(1);
    expect((await store.recovery.documents.list("rule")).map(({ id }) => id)).toEqual(["r-1"]);
    const matches = await sql("select failure_match_id as id from $s.recovery_candidates order by 1");
    expect(matches).toEqual([{ id: "m1" }, { id: "m2" }]);
  });

  it("redrives that were under way go on to their end", async () => {
    const { redrives: records } = store.recovery;
    const resume = (id = "", from: "planned" | "stopped" = "stopped") =>
      records.change(id, { from: [from], status: "running", reason: null }, []);
    await resume(redrives.planned, "planned");
    await resume(redrives.stopped);
    await resume(redrives.stoppedByTheVersionBefore);
    await runAll();
    const failedBefore: Record<string, number> = { resumed: 5, resumedAndClaimed: 5, stopped: 3, stoppedByTheVersionBefore: 3 };
    for (const [name, id] of Object.entries(redrives)) {
      const { status, statusReason, counts } = (await records.get(id)) ?? {};
      const failed = failedBefore[name] ?? 0;
      expect([status, statusReason, counts], name).toEqual([
        "done",
        null,
        { selected: 10, waiting: 0, sent: 0, healed: 10 - failed, failed, skipped: 0 },
      ]);
      const [group] = await sql("select waiting, sent, healed, failed from $s.redrive_group where redrive_id = $1", [id]);
      expect(group, name).toEqual({ waiting: "0", sent: "0", healed: String(10 - failed), failed: String(failed) });
    }
    const learned = (await store.recovery.observations(1)).map(({ healed }) => healed);
    expect(learned.reduce((sum, healed) => sum + healed, 0)).toBeGreaterThan(0);
    expect(new Set((await store.recovery.observations(1)).map(({ groupId }) => groupId))).toEqual(new Set([1]));
  });
});
