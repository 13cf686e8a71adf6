/**
 * Reading audit records in the order of commits, beside writers whose transactions overlap. An earlier reader went on from the highest
 * sequence that it saw, and missed 54 of 2,115 records.
 */
import { expect, it } from "vitest";
import { beginTransaction, dropSchema, openStore } from "../support/postgres.ts";
import { record } from "./records.ts";

const insert = (schema: string, eventId: string) => `with e as (
    insert into "${schema}".audit_event (event_id, hash, recorded_at) values ('${eventId}', gen_random_uuid(), now()) returning seq, recorded_at)
  insert into "${schema}".audit_record (seq, recorded_at, event_id, audit_type, correlation_id, occurred_at, actor, resource, outcome, payload)
  select seq, recorded_at, '${eventId}', 'executions', 'c', now(), 'a', 'r', 'o', '{}' from e`;

it("EV-24: a reader that pages beside long transactions misses nothing and sees nothing twice", async () => {
  const store = await openStore();
  const { audit, schema } = store;
  const written = new Set<string>();
  const seen: string[] = [];
  let writing = true;
  let after: string | undefined;

  async function readOn(): Promise<void> {
    for (let more = true; more; ) {
      const { records, next } = await audit.list({ limit: 7, after });
      seen.push(...records.map(({ eventId }) => eventId));
      after = records.at(-1)?.position ?? after;
      more = next !== null;
    }
  }
  /** Takes its sequences at once and commits when others, who began later, have long committed. */
  async function slowWriter(name: string): Promise<void> {
    for (let round = 0; round < 6; round++) {
      const { tx, commit, rollback } = await beginTransaction();
      const ids = Array.from({ length: 5 }, (_, i) => `${name}-${round}-${i}`);
      for (const id of ids) await tx.query(insert(schema, id));
      for (let i = 0; i < 5; i++)
        await audit.write(record(`between-${name}-${round}-${i}`)).then(() => written.add(`between-${name}-${round}-${i}`));
      if (round === 3) await rollback();
      else {
        for (const id of ids) written.add(id);
        await commit();
      }
    }
  }
  const reader = (async () => {
    while (writing) await readOn();
  })();
  await Promise.all(["a", "b", "c"].map(slowWriter));
  writing = false;
  await reader;
  await readOn();
  expect(new Set(seen)).toEqual(written);
  expect(seen.length).toBe(written.size);
  await store.close();
  await dropSchema(schema);
}, 60_000);

it("EV-24: a record of a transaction that is still open is not waited for, and comes when it is committed", async () => {
  const store = await openStore();
  const { tx, commit } = await beginTransaction();
  await tx.query(insert(store.schema, "slow"));
  await store.audit.write(record("quick"));
  const first = await store.audit.list({ limit: 10 });
  expect(first.records.map(({ eventId }) => eventId)).toEqual(["quick"]);
  await commit();
  const second = await store.audit.list({ limit: 10, after: first.records[0]?.position ?? undefined });
  expect(second.records.map(({ eventId }) => eventId)).toEqual(["slow"]);
  await store.close();
  await dropSchema(store.schema);
});
