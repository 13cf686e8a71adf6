/**
 * R12: what people look at costs the same however many groups there are. Each read of the engine is run and explained on a few thousand groups:
 * none reads a table of groups, occurrences, candidates or dead letters in sequence, and no step touches more rows than a bound, which is
 * far below what there is; at a hundred thousand groups `npm run bench:recovery-size` says how long each takes.
 */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { fillRecovery, settleRecovery } from "../../bench/lib/fill-recovery.mjs";
import { blastRadiusOf } from "../../src/recovery/candidates/found.ts";
import type { Group, GroupFilter } from "../../src/recovery/groups/group.ts";
import { createRecords, type Records } from "../../src/recovery/records.ts";
import type { Home, Run } from "../../src/store/home.ts";
import { withSteadyPlans } from "../../src/store/postgres/connection.ts";
import { definition } from "../../src/testing/store-conformance/fixtures.ts";
import { nodes, type PlanNode, touched } from "../support/plan-nodes.ts";
import { databaseUrl, dropSchema, openStore } from "../support/postgres.ts";

const GROUPS = 20_000;
/** A page and the groups whose count is on its way. */
const ROWS_MAX = 600;
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let store: Awaited<ReturnType<typeof openStore>>;
let client: pg.Client;
let s: string;
let explained: Records;
let redriveId: string;
let seen: PlanNode[] = [];

const explain = async (text: string, values: unknown[] = []): Promise<void> => {
  const { rows } = await client.query(`explain (analyze, costs off, timing off, format json) ${text}`, values);
  seen.push(...nodes(rows[0]["QUERY PLAN"][0].Plan as PlanNode));
};

beforeAll(async () => {
  store = await openStore();
  s = `"${store.schema}"`;
  for (let i = 0; i < 20; i++) await store.topics.put(definition(`shop/topic${i}`), "code");
  client = new pg.Client({ connectionString: databaseUrl(), ...withSteadyPlans(databaseUrl()) });
  await client.connect();
  const size = { groups: GROUPS, occurrences: 100_000, items: 20_000, redrives: 500 };
  redriveId = (await fillRecovery(client, store.schema, size)).redriveId;
  await store.recovery.addUp();
  await settleRecovery(client, store.schema);
  // The real statements, each explained as well.
  const run: Run = async (text, values = []) => {
    await explain(text, values);
    return store.home.read("test")(text, values);
  };
  explained = createRecords({ ...store.home, read: () => run } satisfies Home);
});

afterAll(async () => {
  await client?.end();
  await store?.close();
  if (store) await dropSchema(store.schema);
});

async function plansOf(read: () => Promise<unknown>): Promise<PlanNode[]> {
  seen = [];
  await read();
  expect(seen.length).toBeGreaterThan(0);
  return seen;
}

const LARGE = /^(recovery_group|recovery_occurrence|recovery_candidate|dead_letter|redrive_item)$/;
const limit = 50;
const day = (days: number) => new Date(Date.UTC(2020, 0, 1) + days * 86_400_000);

describe("R12: lists and numbers at size", () => {
  const groups = (filter: Partial<GroupFilter>) => () => explained.groups({ limit, ...filter });
  const anyGroup = async () => (await explained.groups({ limit: 1 })).data[0] as Group;
  const READS: [string, () => Promise<unknown>][] = [
    ["groups", groups({})],
    ["groups that are open", groups({ open: true })],
    ["groups by size", groups({ order: "size" })],
    ["open groups by size", groups({ open: true, order: "size" })],
    ["groups since", groups({ since: day(0) })],
    ["groups until", groups({ until: day(0) })],
    ["groups until, by size", groups({ until: day(0), order: "size" })],
    ["groups of a topic", groups({ topic: "shop/topic3" })],
    ["groups of a topic, by size", groups({ topic: "shop/topic3", order: "size" })],
    ["groups of a topic that has none", groups({ topic: "shop/none" })],
    ["groups of a code", groups({ errorCode: "CODE_3" })],
    ["groups with reported failures", groups({ reported: true })],
    ["groups of a tenant that has none", groups({ tenantId: "nobody" })],
    ["a scope, merged ones too", groups({ topic: "shop/topic3", errorCode: "CODE_3", merged: true })],
    ["occurrences", async () => explained.occurrences((await anyGroup()).groupId, { limit })],
    ["candidates", () => explained.candidates({ limit })],
    ["rejected candidates, of which there are none", () => explained.candidates({ limit, decision: "rejected" })],
    ["pending candidates", () => explained.candidates({ limit, decision: "pending" })],
    ["failed evaluations", () => explained.candidates({ limit, evaluationStatus: "failed" })],
    ["executing candidates", () => explained.candidates({ limit, executionStatus: "executing" })],
    ["candidates of an action that nobody took", () => explained.candidates({ limit, action: "rollback" })],
    ["preview", async () => blastRadiusOf(explained, (await anyGroup()).groupId + GROUPS / 2)],
    ["stats", () => explained.stats([])],
    ["redrives", () => explained.redrives.list({ limit })],
    ["running redrives", () => explained.redrives.list({ limit, status: "running" })],
    ["items", () => explained.redrives.items(redriveId, { limit })],
    ["failed items", () => explained.redrives.items(redriveId, { limit, state: "failed" })],
    ["items of a state that none has", () => explained.redrives.items(redriveId, { limit, state: "skipped" })],
    ["mv_top_pending", () => explain(`select * from ${s}.mv_top_pending limit 50`)],
    ["mv_top_pending, by confidence", () => explain(`select * from ${s}.mv_top_pending order by confidence desc limit 50`)],
    [
      "mv_top_pending, ordered by its reader",
      () => explain(`select id from ${s}.mv_top_pending order by confidence desc nulls last limit 50`),
    ],
  ];

  it.each(READS)("%s: no table is read whole, no step touches more than a bound", async (_name, read) => {
    for (const node of await plansOf(read)) {
      const whole = node["Node Type"] === "Seq Scan" && LARGE.test(node["Relation Name"] ?? "");
      expect({ whole, rows: touched(node) > ROWS_MAX, node: { ...node, Plans: null } }).toMatchObject({
        whole: false,
        rows: false,
      });
    }
  });

  it("mv_top_pending is read from an index by confidence, however its reader puts those without one", async () => {
    for (const order of ["desc", "desc nulls last", "desc nulls last, id"]) {
      const text = `select id, confidence from ${s}.mv_top_pending order by confidence ${order} limit 50`;
      const used = (await plansOf(() => explain(text))).map((node) => node["Index Name"]);
      expect(used).toContain(order === "desc" ? "recovery_candidate_top" : "recovery_candidate_best");
      const { rows } = await client.query(text);
      const { rows: best } = await client.query(
        `select max(confidence) as most from ${s}.recovery_candidates where decision = 'pending'`,
      );
      expect(rows[0].confidence).toBe(best[0].most);
    }
  });
});

describe("R12: a redrive over many groups", () => {
  it("asks once what was delivered since their deaths, not for each of them", async () => {
    const { home } = store;
    seen = [];
    // What the explanation wrote is there already when the statement itself runs.
    const transaction: Home["transaction"] = (during, work) =>
      home.transaction(during, (inside) => {
        const run: Run = async (text, values, how) => {
          if (text.includes(".recovery_observation")) {
            const [[plan] = []] = await inside.run(`explain (analyze, costs off, timing off, format json) ${text}`, values, how);
            seen.push(...nodes(JSON.parse(plan as string)[0].Plan as PlanNode));
          }
          return inside.run(text, values, how);
        };
        return work({ ...inside, run });
      });
    const select = { topic: "shop/topic0", limit: 10_000, generationMax: 10 };
    const started = await createRecords({ ...home, transaction }).redrives.start({
      ...{ redriveId: "ffffffff-0000-7000-8000-000000000002", idempotencyKey: null, requestHash: "0", status: "running" },
      ...{ mode: "replay", action: "retry_exponential", candidateId: null, actor: "ann", reason: "many", select },
      ...{ plan: "{}", provenance: [] },
    });
    expect(started.kind).toBe("started");
    const asked = seen.filter((node) => /^message_/.test(node["Relation Name"] ?? ""));
    expect(asked.length).toBeGreaterThan(0);
    for (const node of asked) expect(node["Actual Loops"], node["Relation Name"]).toBeLessThanOrEqual(1);
    const { rows } = await client.query(`select count(*)::int as n from ${s}.recovery_observation where redrive_id = $1`, [
      "ffffffff-0000-7000-8000-000000000002",
    ]);
    expect(rows[0].n).toBeGreaterThan(200);
  });
});

describe("R12: the rolling counts are the counts", () => {
  async function truth() {
    const { rows } =
      await client.query(`select coalesce(g.merged_into, g.id)::text as id, count(*)::int as n from ${s}.dead_letter d
      join ${s}.recovery_group g on g.id = d.group_id where d.resolution = 0 and d.ingested_attempts = d.attempts group by 1`);
    return new Map(rows.map(({ id, n }) => [Number(id), n as number]));
  }

  async function expectTrue(): Promise<void> {
    const open = await truth();
    const listed = new Map<number, number>();
    let cursor: string | undefined;
    let last = Number.POSITIVE_INFINITY;
    do {
      const page = await store.recovery.groups({ open: true, order: "size", limit: 200, cursor });
      for (const { groupId, openMessages } of page.data) {
        expect(openMessages).toBeLessThanOrEqual(last);
        last = openMessages;
        listed.set(groupId, openMessages);
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(listed).toEqual(open);
    const { rows } =
      await client.query(`select count(*)::int as groups, sum(occurrences)::int as occurrences from ${s}.recovery_group
      where merged_into is null`);
    expect(await store.recovery.stats([])).toMatchObject({ ...rows[0], openGroups: open.size });
  }

  it("at every moment: while changes wait to be added up, in the middle of it, and after", async () => {
    const addUp = () => store.recovery.addUp();
    const change = (where: string, set: string) =>
      client.query(
        `update ${s}.dead_letter d set ${set} where d.id in (select id from ${s}.dead_letter where ${where} order by id limit 400)`,
      );
    await expectTrue();
    await change("resolution = 0", "resolution = 1, settled_at = now()");
    await change("resolution = 1", "resolution = 0, settled_at = null");
    await expectTrue();
    await addUp();
    await expectTrue();
    const [{ groupId: into }, { groupId: from }] = (await store.recovery.groups({ order: "size", limit: 2 })).data as [
      Group,
      Group,
    ];
    await client.query(`update ${s}.dead_letter set resolution = 2, settled_at = now() where group_id = ${from} and id in (
      select id from ${s}.dead_letter where group_id = ${from} and resolution = 0 limit 3)`);
    expect((await store.recovery.merge({ from, into, provenance: [] })).kind).toBe("done");
    await expectTrue();
    await addUp();
    await addUp();
    await expectTrue();
    const group = await store.recovery.group(into);
    expect(group?.openMessages).toBe((await truth()).get(into));
  });

  it("R5: failures that others reported, as they come, are sent, move, end and merge", async () => {
    const topic = "shop/topic4";
    const { recovery } = store;
    const expectCounted = async () => {
      const { rows } =
        await client.query(`select coalesce(g.merged_into, g.id)::text as id, count(*)::int as n from ${s}.recovery_occurrence o
        join ${s}.recovery_group g on g.id = o.group_id and g.topic = '${topic}'
        where o.message_id is null and o.sent_id is null and o.id > g.reports_closed group by 1`);
      const listed = new Map<number, number>();
      let cursor: string | undefined;
      do {
        const page = await recovery.groups({ topic, reported: true, limit: 200, cursor });
        for (const { groupId, openReports } of page.data) listed.set(groupId, openReports);
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      expect(listed).toEqual(new Map(rows.map(({ id, n }) => [Number(id), n as number])));
    };
    const [a, b, c] = (await recovery.groups({ topic, reported: true, limit: 200 })).data
      .sort((one, other) => other.openReports - one.openReports)
      .map(({ groupId }) => groupId) as [number, number, number];
    const reportsOf = async (groupId: number) =>
      (await recovery.occurrences(groupId, { limit: 20 })).data.filter(({ openReport }) => openReport);
    await expectCounted();
    const sent = (await reportsOf(a)).slice(0, 3).map(({ occurrenceId }) => occurrenceId);
    await client.query(`update ${s}.recovery_occurrence set sent_id = gen_random_uuid() where id = any ($1)`, [sent]);
    await expectCounted();
    const moved = (await reportsOf(a)).slice(0, 4).map(({ occurrenceId }) => occurrenceId);
    expect(await recovery.moveOccurrences(a, b, moved)).toBe(4);
    await expectCounted();
    expect((await recovery.merge({ from: b, into: c, provenance: [] })).kind).toBe("done");
    await expectCounted();
    expect((await recovery.resolveGroup(c, { actor: "ann", actorType: "human", reason: "mended" })).kind).toBe("done");
    expect((await recovery.group(c))?.openReports).toBe(0);
    await expectCounted();
  });

  it("candidates are counted by their states through every change, and by two that add up at once", async () => {
    const { data } = await store.recovery.candidates({ decision: "pending", limit: 20 });
    await Promise.all([
      ...data.map(({ candidateId }) => store.recovery.write({ candidateId, patch: { decision: "rejected" }, provenance: [] })),
      ...[1, 2, 3].map(() => store.recovery.addUp()),
    ]);
    await store.recovery.addUp();
    const { rows } = await client.query(`select decision, count(*)::int as n from ${s}.recovery_candidate group by 1`);
    const stats = await store.recovery.stats([]);
    expect(stats.decisions).toMatchObject(Object.fromEntries(rows.map(({ decision, n }) => [decision, n])));
  });
});

describe("R12: order and time", () => {
  const all = async (filter: Partial<GroupFilter>) => {
    const found: Group[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.recovery.groups({ limit: 7, ...filter, cursor });
      found.push(...page.data);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return found;
  };

  it("groups that were active between two moments, page by page, by time or size, are the same ones", async () => {
    const [newest] = (await store.recovery.groups({ limit: 1 })).data as [Group];
    const at = (minutes: number) => new Date(newest.lastAt.getTime() - minutes * 60_000);
    const window = { since: at(300), until: at(1_490), topic: "shop/topic3" };
    const fits = (await all({ topic: "shop/topic3" })).filter((g) => g.lastAt >= window.since && g.firstAt < window.until);
    const recent = await all(window);
    const bySize = await all({ ...window, order: "size" });
    expect(recent.length).toBeGreaterThan(7);
    expect(recent.map(({ groupId }) => groupId)).toEqual(fits.map(({ groupId }) => groupId));
    const size = (a: Group, b: Group) =>
      b.openMessages - a.openMessages || b.occurrenceCount - a.occurrenceCount || b.groupId - a.groupId;
    expect(bySize.map(({ groupId }) => groupId)).toEqual([...fits].sort(size).map(({ groupId }) => groupId));
  });

  it("a cursor of the other order is refused", async () => {
    const { nextCursor } = await store.recovery.groups({ limit: 1 });
    const asked = store.recovery.groups({ limit: 1, order: "size", cursor: nextCursor ?? "" });
    await expect(asked).rejects.toMatchObject({ code: "invalid_request" });
  });
});
