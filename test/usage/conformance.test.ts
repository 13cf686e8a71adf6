/**
 * The usage seam's conformance suite on memory and on PostgreSQL.
 */
import { afterAll, describe, it } from "vitest";
import { createMemoryStore, createMemoryUsageStore } from "../../src/index.ts";
import { createPostgresUsageStore } from "../../src/store/postgres/index.ts";
import type { UsageStore } from "../../src/store/usage.ts";
import { type UsageHarness, usageConformance } from "../../src/testing/index.ts";
import {
  beginTransaction,
  databaseUrl,
  dropSchema,
  emptyTables,
  freshSchema,
  keptClient,
  openStore,
} from "../support/postgres.ts";

const memory: UsageHarness = {
  name: "memory",
  async open() {
    const [usage, store] = [createMemoryUsageStore(), createMemoryStore()];
    await usage.open();
    await store.open();
    return { usage, store, close: () => usage.close() };
  },
};

const used: string[] = [];
const idle: string[] = [];
const between = keptClient();
afterAll(async () => {
  await between.close();
  for (const schema of used) await dropSchema(schema);
});

const TABLES = "chat_turns, quota_usage, topic, lane, message, dedupe, ready, lease, attempt, dead_letter, leader".split(", ");

const postgres: UsageHarness = {
  name: "postgres",
  async open() {
    const again = idle.pop();
    const schema = again ?? freshSchema();
    if (again) await emptyTables(await between.get(), schema, TABLES);
    else used.push(schema);
    const store = await openStore({ schema });
    const opened: UsageStore[] = [];
    const open = async () => {
      const usage = createPostgresUsageStore({ url: databaseUrl(), schema, poolMax: 8 });
      await usage.open();
      opened.push(usage);
      return usage;
    };
    return {
      usage: await open(),
      store,
      another: open,
      transaction: beginTransaction,
      async close() {
        for (const usage of opened) await usage.close();
        await store.close();
        idle.push(schema);
      },
    };
  },
};

describe("usage in memory", () => {
  for (const { group, name, run } of usageConformance(memory, { transactions: false })) it(`${group}: ${name}`, run);
});

describe("usage on PostgreSQL", () => {
  for (const { group, name, run } of usageConformance(postgres, { transactions: true })) it(`${group}: ${name}`, run);
});
