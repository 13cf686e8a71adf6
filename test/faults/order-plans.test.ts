/**
 * What a look, a claim and a list of what is due read of ordered lanes (N16): as many pages with twenty thousand keys in the way as with none.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { orderedSql } from "../../src/store/postgres/statements/claim-ordered.ts";
import { dueSql } from "../../src/store/postgres/statements/due.ts";
import { lanesSql } from "../../src/store/postgres/statements/lanes.ts";
import { definition, STRICT } from "../../src/testing/store-conformance/fixtures.ts";
import { dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

const schema = freshSchema();
const s = `"${schema}"`;
const MANY = 20_000;
/** Of a page each: the index by due, and for each head its key, its lock, its body, and what is written. */
const PAGES_MAX = 2_000;

let store: Awaited<ReturnType<typeof openStore>>;

beforeAll(async () => {
  store = await openStore({ schema });
  await store.topics.put(definition(STRICT, "strict"), "code");
  await withClient(async (client) => {
    await client.query(
      `insert into ${s}.lane (id, topic_id, kind) overriding system value select 7, id, 3 from ${s}.topic where name = '${STRICT}'`,
    );
    const add = (what: string, from: string) =>
      client.query(`insert into ${s}.${what} select ${from} from generate_series(1, ${MANY}) n`);
    const ordered = "ready_ordered (lane_id, ordering_key, id, seq, due, behind)";
    await add("order_lock (lane_id, ordering_key, id, seq)", "7, 'a' || n, gen_random_uuid(), n");
    await add(ordered, `7, 'a' || n, gen_random_uuid(), ${MANY} + n, now() - interval '1 hour', true`);
    await add(ordered, `7, 'b' || n, gen_random_uuid(), ${2 * MANY} + n, now() + interval '1 hour', false`);
    await add(ordered, `7, 'c', gen_random_uuid(), ${3 * MANY} + n, now() - interval '1 hour', n > 1`);
    await client.query(
      `insert into ${s}.${ordered} select 7, 'z' || n, gen_random_uuid(), ${4 * MANY} + n, now(), false from generate_series(1, 20) n`,
    );
    await client.query(`analyze ${s}.ready_ordered, ${s}.order_lock`);
  });
}, 60_000);

afterAll(async () => {
  await store.close();
  await dropSchema(schema);
});

/** The pages that a statement touches, as our connections plan it. */
async function pagesOf(text: string, values: unknown[]): Promise<{ pages: number; plan: string }> {
  return withClient(async (client) => {
    await client.query("set plan_cache_mode = force_generic_plan; set enable_seqscan = off");
    await client.query("begin");
    const { rows } = await client.query(`explain (analyze, buffers, costs off, timing off) ${text}`, values);
    await client.query("rollback");
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    const [hit = "0", read = "0"] = /Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?/.exec(plan)?.slice(1) ?? [];
    return { pages: Number(hit) + Number(read), plan };
  });
}

it("a look is a descent per lane", async () => {
  const { pages, plan } = await pagesOf(lanesSql(s)(undefined), [[], [], [0], [2 ** 31 - 1], null, 0]);
  expect(plan).toContain("ready_ordered_due");
  expect(pages).toBeLessThan(100);
});

it("a claim reads the heads that are due and nothing of what is in their way", async () => {
  const { pages, plan } = await pagesOf(orderedSql(s)(undefined), [[7], [20], "w", 30_000, 1_000_000, true, 16]);
  expect(plan).toContain("ready_ordered_due");
  expect(plan).not.toMatch(/Hash.*order_lock|Seq Scan on (ready_ordered|order_lock)/);
  expect(pages).toBeLessThan(PAGES_MAX);
});

it("a list of what is due reads the heads and nothing of what is in their way", async () => {
  const { pages, plan } = await pagesOf(dueSql(s)(undefined), [[7], 20]);
  expect(plan).toContain("ready_ordered_due");
  expect(plan).not.toMatch(/Hash.*order_lock|Seq Scan on (ready_ordered|order_lock)/);
  expect(pages).toBeLessThan(PAGES_MAX);
});
