/**
 * Pages of a large group's occurrences on PostgreSQL: how far one page looks for what is open is bounded, and following the pages finds all.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
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

it("who asks a large group for what is open, or is not, is led through it in steps and finds it all", async () => {
  const count = 5_100;
  await withClient(async (client) => {
    await client.query(`set search_path = "${schema}"`);
    await client.query(`insert into recovery_group (fingerprint, match_id, topic, sink, code, template, first_at, last_at)
      values ('f', 'm', 'a/b', 'http', 'E', 't', now(), now())`);
    await client.query(`insert into dead_letter (id, lane_id, attempts, resolution) select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 1, 3,
      case when n in (1, 2, 5000) then 1 else 0 end from generate_series(1, ${count}) n`);
    await client.query(`insert into recovery_occurrence (group_id, at, hash, source, message_id, generation, attempts, code, text)
      select g.id, now(), gen_random_uuid(), 'message', d.id, 0, 3, 'E', 't' from dead_letter d, recovery_group g where g.fingerprint = 'f' order by d.id`);
  });
  const groupId = (await store.recovery.groupOf({ fingerprint: "f" }))?.groupId as number;
  const ends = (page: { data: { message: { id: string } | null }[] }) =>
    page.data.map(({ message }) => Number(message?.id.slice(-12)));
  const first = await store.recovery.occurrences(groupId, { limit: 10, open: false });
  expect([ends(first), first.nextCursor]).toEqual([[5000], expect.any(String)]);
  const rest = await store.recovery.occurrences(groupId, { limit: 10, open: false, cursor: first.nextCursor as string });
  expect([ends(rest), rest.nextCursor]).toEqual([[2, 1], null]);
  const open = await store.recovery.occurrences(groupId, { limit: 2, open: true, cursor: first.nextCursor as string });
  expect([ends(open), open.nextCursor]).toEqual([[100, 99], expect.any(String)]);
});
