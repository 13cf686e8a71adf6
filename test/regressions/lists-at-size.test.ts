/**
 * N20: every combination of filters is read from indexes and ends where the page is full: no plan reads a table of messages in sequence, and no
 * step of one touches more than a bounded number of rows, at thirty thousand messages and at a million (`npm run soak:size`) alike.
 */
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { fill } from "../../bench/lib/fill.mjs";
import type { Resolution, Status } from "../../src/message/message.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { type Connection, withSteadyPlans } from "../../src/store/postgres/connection.ts";
import type { Db } from "../../src/store/postgres/db.ts";
import { createList } from "../../src/store/postgres/statements/list.ts";
import type { ListFilter } from "../../src/store/store.ts";
import { definition } from "../../src/testing/store-conformance/fixtures.ts";
import { nodes, type PlanNode, touched } from "../support/plan-nodes.ts";
import { databaseUrl, dropSchema, openStore } from "../support/postgres.ts";

const COUNT = process.env.MAKEGOOD_SOAK ? 1_000_000 : 30_000;
const ROWS_MAX = 6_000;
/** What is pending in some lanes is read and sorted up to a fixed number, which a million messages reach and thirty thousand do not. */
const PENDING_ROWS_MAX = 20_100;
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

let client: pg.Client;
let schema: string;
let seen: PlanNode[] = [];

beforeAll(async () => {
  const store = await openStore();
  schema = store.schema;
  for (let i = 0; i < 20; i++) await store.topics.put(definition(`at/size${i}`), "code");
  await store.close();
  client = new pg.Client({ connectionString: databaseUrl(), ...withSteadyPlans(databaseUrl()) });
  await client.connect();
  const fromMs = systemClock.wallMs() - COUNT / 10 - 1_000;
  await fill(client, schema, { count: COUNT, tenants: 50, delivered: 60, dead: 20, fromMs, keyed: true });
});

afterAll(async () => {
  await client?.end();
  if (schema) await dropSchema(schema);
});

/** The real statements, each explained as well. */
const rows: Connection["rows"] = async (_during, text, values) => {
  const explained = await client.query(`explain (analyze, costs off, timing off, format json) ${text}`, values);
  seen.push(...nodes(explained.rows[0]["QUERY PLAN"][0].Plan as PlanNode));
  const types = { getTypeParser: () => (value: unknown) => value } as never;
  return (await client.query({ text, values, rowMode: "array", types })).rows;
};

const list = (filter: ListFilter, clock = systemClock) =>
  createList({ s: `"${schema}"`, connection: { rows } as Connection, clock } as unknown as Db)(filter);

const STATES: { status?: Status; resolution?: Resolution }[] = [
  {},
  ...(["pending", "processing", "delivered", "dead"] as const).map((status) => ({ status })),
  ...(["open", "resolved", "discarded"] as const).map((resolution) => ({ resolution })),
];
const WHERE = [{}, { topic: "at/size3" }, { tenantId: "tenant-7" }, { topic: "at/size3", tenantId: "tenant-7" }];

/** What the filter means, read without any index of ours. */
async function truth({ topic, tenantId, status, resolution, key }: ListFilter, below: string, limit: number): Promise<string[]> {
  const s = `"${schema}"`;
  const state = `case when exists (select from ${s}.ready r where r.id = m.id) then 'pending'
    when exists (select from ${s}.dead_letter d where d.id = m.id) then 'dead' else 'delivered' end`;
  const names = ["open", "resolved", "discarded"];
  const text = `select m.id::text from ${s}.message m join ${s}.lane l on l.id = m.lane_id join ${s}.topic t on t.id = l.topic_id
    where m.id < $1 and ($2::text is null or t.name = $2) and ($3::text is null or l.tenant = $3) and ($4::text is null or ${state} = $4)
      and ($5::int is null or exists (select from ${s}.dead_letter d where d.id = m.id and d.resolution = $5)) and ($6::text is null or m.key = $6)
    order by m.id desc limit ${limit}`;
  const values = [below, topic, tenantId, status, resolution && names.indexOf(resolution), key].map((value) => value ?? null);
  return (await client.query({ text, values })).rows.map(({ id }) => id as string);
}

describe(`N20: lists of ${COUNT} messages`, () => {
  for (const where of WHERE) {
    it(`${JSON.stringify(where)}: every state, with and without a key, page after page`, async () => {
      for (const state of STATES) {
        for (const key of [undefined, "key-20007"]) {
          const filter: ListFilter = { ...where, ...state, ...(key ? { key } : {}), limit: 10 };
          const name = JSON.stringify(filter);
          let below = "ffffffff-ffff-ffff-ffff-ffffffffffff";
          for (let page = 0; page < 2; page++) {
            seen = [];
            const { data, nextCursor } = await list({ ...filter, cursor: below });
            expect(
              data.map(({ id }) => id),
              name,
            ).toEqual(await truth(filter, below, 10));
            const whole = seen.filter(
              (node) => node["Node Type"] === "Seq Scan" && /message|ready|attempt|dead|dedupe/.test(node["Relation Name"] ?? ""),
            );
            expect(
              whole.filter((node) => touched(node) > 0),
              name,
            ).toEqual([]);
            const most = state.status === "pending" ? PENDING_ROWS_MAX : ROWS_MAX;
            expect(Math.max(...seen.map(touched)), name).toBeLessThan(most);
            if (nextCursor === null) break;
            below = nextCursor;
          }
        }
      }
    });
  }

  it("what is due in some lanes is read from its index: as many rows as the page has, of each lane", async () => {
    const s = `"${schema}"`;
    const text = `select l.id::text from ${s}.lane l join ${s}.topic t on t.id = l.topic_id where t.name = 'at/size3'`;
    const dueIn = (await client.query(text)).rows.map(({ id }) => id as string);
    const expected = await client.query({
      text: `select id::text from ${s}.ready where lane_id = any ($1::int[]) and due <= now() order by due, id limit 10`,
      values: [dueIn],
    });
    seen = [];
    const { data, nextCursor } = await list({ dueIn, limit: 10 });
    expect(dueIn.length).toBeGreaterThan(10);
    expect(data.map(({ id }) => id)).toEqual(expected.rows.map(({ id }) => id));
    expect([data.length, nextCursor]).toEqual([10, null]);
    expect(
      seen.filter((node) => node["Node Type"] === "Seq Scan" && touched(node) > 0).map((node) => node["Relation Name"]),
    ).not.toContain("ready");
    expect(Math.max(...seen.map(touched))).toBeLessThanOrEqual(10 * dueIn.length);
  });

  it("a page that looked long enough ends early, and its cursor goes on: nothing is left out", async () => {
    let ms = 0;
    const hasty = { ...systemClock, monotonicMs: () => (ms += 1_000) };
    const filter: ListFilter = { topic: "at/size3", tenantId: "tenant-7", status: "delivered", limit: 3 };
    const ids: string[] = [];
    let early = 0;
    let cursor: string | undefined;
    do {
      const page = await list({ ...filter, cursor }, hasty);
      if (page.data.length < 3 && page.nextCursor !== null) early++;
      ids.push(...page.data.map(({ id }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(ids).toEqual(await truth(filter, "ffffffff-ffff-ffff-ffff-ffffffffffff", COUNT));
    expect(early).toBeGreaterThan(0);
  });
});
