/**
 * What statements of the recovery seam read on large tables, by their plans: no more than they are asked for.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { carriedSql } from "../../src/recovery/redrive/select-sql.ts";
import { dropSchema, freshSchema, openStore, withClient } from "../support/postgres.ts";

const schema = freshSchema();
let store: Awaited<ReturnType<typeof openStore>>;

beforeAll(async () => {
  store = await openStore({ schema });
});

afterAll(async () => {
  await store.close();
  await dropSchema(schema);
});

async function planOf(text: string): Promise<string> {
  return withClient(async (client) => {
    const { rows } = await client.query(`explain (costs off) ${text.replaceAll("$s", `"${schema}"`)}`);
    return rows.map((row) => row["QUERY PLAN"]).join("\n");
  });
}

it("a look at a redrive reads the items that it looks at, not all that were sent", async () => {
  const id = "00000000-0000-7000-8000-000000000001";
  await withClient(async (client) => {
    const text = `insert into "${schema}".redrive_item (redrive_id, n, message_id, generation, revision, state, sent_at)
      select $1, n, gen_random_uuid(), 0, 0, 1, now() from generate_series(1, 20000) n`;
    await client.query(text, [id]);
    await client.query(`analyze "${schema}".redrive_item`);
  });
  const items = `select i.* from $s.redrive_item i where i.redrive_id = '${id}' and i.state = 1`;
  expect(await planOf(`${items} order by i.looked_at nulls first, i.n limit 1000`)).not.toContain("Sort");
});

it("who asks for executing candidates reads those alone, whatever was executed before", async () => {
  const plan = await planOf(
    "select c.* from $s.recovery_candidate c where c.execution_status = 'executing' order by c.id desc limit 10",
  );
  expect(plan).toContain("recovery_candidate_execution");
});

it("who asks which messages are carried looks up their items and carriers, and reads no table whole", async () => {
  await withClient(async (client) => {
    const s = `"${schema}"`;
    await client.query(`insert into ${s}.redrive_item (redrive_id, n, message_id, generation, revision, state, sent_at, carrier_id)
      select '00000000-0000-7000-8000-000000000002', n, gen_random_uuid(), 0, 0, 1, now(), gen_random_uuid() from generate_series(1, 20000) n`);
    await client.query(`insert into ${s}.attempt (message_id, lease_id, n, outcome, counted, at)
      select gen_random_uuid(), n, 1, 3, true, now() from generate_series(1, 20000) n`);
    await client.query(`analyze ${s}.redrive_item, ${s}.attempt`);
  });
  const ids = `array(select message_id from $s.redrive_item limit 1000)`;
  const plan = await planOf(carriedSql("$s", `(${ids})`, "null::text"));
  expect(plan).toMatch(/Index Scan using redrive_item_copied on redrive_item i\s+Index Cond: \(message_id = ANY/);
  expect(plan).not.toMatch(/hashed|Seq Scan on (attempt_old|message_kept|dead_letter)/);
});
