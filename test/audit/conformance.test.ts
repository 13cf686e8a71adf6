/**
 * The audit seam's conformance suite on memory and on PostgreSQL, and what only PostgreSQL has: months, and tables that refuse changes.
 */
import { afterAll, describe, expect, it } from "vitest";
import { createMemoryAudit } from "../../src/store/memory/audit.ts";
import { auditConformance } from "../../src/testing/index.ts";
import { dropSchema, openStore, withClient } from "../support/postgres.ts";
import { record } from "./records.ts";

const schemas: string[] = [];
afterAll(async () => {
  for (const schema of schemas) await dropSchema(schema);
});

async function open() {
  const store = await openStore();
  schemas.push(store.schema);
  const others: { close(): Promise<void> }[] = [];
  return {
    audit: store.audit,
    schema: store.schema,
    async another() {
      const other = await openStore({ schema: store.schema });
      others.push(other);
      return other.audit;
    },
    async close() {
      for (const other of others) await other.close();
      await store.close();
    },
  };
}

describe("the audit seam in memory", () => {
  const harness = { name: "memory", open: async () => ({ audit: createMemoryAudit(), close: async () => {} }) };
  for (const { name, run } of auditConformance(harness)) it(name, run);
});

describe("the audit seam in PostgreSQL", () => {
  for (const { name, run } of auditConformance({ name: "postgres", open })) it(name, run);

  it("keeps records in months and refuses every change of them", async () => {
    const { audit, schema, close } = await open();
    await audit.write(record("e-1"), { now: new Date("2031-01-31T23:59:59.999Z") });
    await audit.write(record("e-2"), { now: new Date("2031-02-01T00:00:00.000Z") });
    await withClient(async (client) => {
      const { rows } = await client.query(
        `select tableoid::regclass::text as part, event_id from "${schema}".audit_record order by seq`,
      );
      expect(rows.map(({ part }) => String(part).replace(/^.*\./, ""))).toEqual(["audit_record_203101", "audit_record_203102"]);
      await expect(client.query(`update "${schema}".audit_record set outcome = 'x'`)).rejects.toThrow(/append-only/);
      await expect(client.query(`delete from "${schema}".audit_record`)).rejects.toThrow(/append-only/);
      await expect(client.query(`update "${schema}".audit_event set hash = gen_random_uuid()`)).rejects.toThrow(/append-only/);
    });
    await close();
  });

  it("finishes a prune that a crash cut in half", async () => {
    const { audit, schema, close } = await open();
    await audit.write(record("e-1"), { now: new Date("2031-01-10T00:00:00Z") });
    await withClient((client) =>
      client.query(`alter table "${schema}".audit_record detach partition "${schema}".audit_record_203101`),
    );
    expect(await audit.prune({ keptMs: 86_400_000, now: new Date("2031-03-10T00:00:00Z") })).toBe(1);
    expect((await audit.write(record("e-1"), { now: new Date("2031-03-10T00:00:00Z") })).kind).toBe("stored");
    await close();
  });

  it("DA-14: a write whose answer was lost is a duplicate the second time", async () => {
    const { audit, close } = await open();
    const written = await Promise.all([audit.write(record("e-1")), audit.write(record("e-1"))]);
    expect(written.map(({ kind }) => kind).sort()).toEqual(["duplicate", "stored"]);
    await close();
  });
});
