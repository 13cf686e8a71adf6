/**
 * Fault 18: the whole conformance suite through PgBouncer in transaction mode, the caller's transactions included.
 */
import { afterAll, beforeAll, describe, it } from "vitest";
import { storeConformance } from "../../src/testing/index.ts";
import { postgresHarness } from "../conformance/postgres-harness.ts";
import { type PgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { databaseUrl } from "../support/postgres.ts";

describe("the PostgreSQL store through PgBouncer", () => {
  let pooler: PgBouncer | undefined;
  const direct = process.env.TEST_DATABASE_URL;

  beforeAll(async () => {
    pooler = await startPgBouncer(databaseUrl(), { poolSize: 8 });
    // Everything in this file, the harness's own statements too, goes through the pooler.
    process.env.TEST_DATABASE_URL = pooler.url;
  }, 300_000);

  afterAll(async () => {
    process.env.TEST_DATABASE_URL = direct;
    await pooler?.close();
  });

  for (const { group, name, run } of storeConformance(postgresHarness())) it(`${group}: ${name}`, run);
});
