/**
 * Who is woken by the server: workers of other processes, and those of this one for a caller's transaction, whose commit it does not see.
 * A commit of our own tells its own workers itself; commits that notify wait for each other, so it sends no notice for them.
 */
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { NewMessage } from "../../src/message/message.ts";
import { createIds } from "../../src/platform/ids.ts";
import { channelName } from "../../src/store/postgres/migrations/0002-enqueue-function.ts";
import { newMessage, TOPICS } from "../../src/testing/store-conformance/fixtures.ts";
import { databaseUrl, dropSchema, openStore, withClient } from "../support/postgres.ts";

const id = createIds();
const message = (fields: Partial<NewMessage> = {}) => newMessage(id(), { tenantId: "hints", ...fields });
const notices: string[] = [];
let store: Awaited<ReturnType<typeof openStore>>;
let other: Awaited<ReturnType<typeof openStore>>;
let listener: pg.Client;

beforeAll(async () => {
  store = await openStore();
  other = await openStore({ schema: store.schema });
  for (const topic of TOPICS) await store.topics.put(topic, "code");
  listener = new pg.Client({ connectionString: databaseUrl() });
  await listener.connect();
  listener.on("notification", ({ payload = "" }) => notices.push(payload));
  await listener.query(`listen "${channelName(store.schema)}"`);
  // Lanes are made, and what is said of new topics has been heard.
  await store.enqueue([message()]);
  await other.enqueue([message()]);
});

afterAll(async () => {
  await listener.end();
  await store.close();
  await other.close();
  await dropSchema(store.schema);
});

/** What was notified by `work`, up to a notice of our own that comes after all of it. */
async function noticesOf(work: () => Promise<unknown>): Promise<string[]> {
  notices.length = 0;
  await work();
  await listener.query("select pg_notify($1, 'the end')", [channelName(store.schema)]);
  await expect.poll(() => notices.includes("the end")).toBe(true);
  return notices.filter((notice) => notice !== "the end" && notice !== "topics");
}

const inTransaction = () =>
  withClient(async (tx) => {
    await tx.query("begin");
    await store.enqueue([message()], { tx });
    await tx.query("commit");
  });
const one = (on: typeof store) => () => on.enqueue([message()]);
const batch = (on: typeof store) => () => on.enqueue([message(), message({ key: id() })]);

it("nobody waits: nobody is notified", async () => {
  for (const work of [one(store), batch(store), inTransaction]) expect(await noticesOf(work)).toEqual([]);
});

it("a worker of this process waits: only what others commit, and a caller's transaction, notifies", async () => {
  await store.idle('it\'s "mine", {1}\\', true);
  for (const work of [one(store), batch(store)]) expect(await noticesOf(work)).toEqual([]);
  for (const work of [one(other), batch(other), inTransaction]) expect(await noticesOf(work)).toHaveLength(1);
});

it("a worker of another process waits as well: it is notified", async () => {
  await other.idle("theirs", true);
  for (const work of [one(store), batch(store)]) expect(await noticesOf(work)).toHaveLength(1);
});

it("its own worker is told all the same, at once", async () => {
  const lanes: (string | null)[] = [];
  // The notice that ends a case is heard by the store as well.
  const off = store.wake((hint) => hint.kind === "work" && hint.lane !== "the end" && lanes.push(hint.lane));
  await store.enqueue([message()]);
  off();
  expect(lanes).toHaveLength(1);
});
