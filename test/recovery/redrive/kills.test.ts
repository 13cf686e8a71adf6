/**
 * Fault 42 on PostgreSQL with real processes: a redrive of 1,000 dead letters whose runner is killed again and again is continued where
 * it was, and every message is replayed exactly once, with the payload it had. Pressing twice is one; a broken receiver stops it.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startMaintenance } from "../../../src/maintenance/maintenance.ts";
import { createEvents } from "../../../src/observe/events.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createIds } from "../../../src/platform/ids.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { createRedrives } from "../../../src/recovery/redrive/redrives.ts";
import { DELIVERED, dead, definition, newMessage } from "../../../src/testing/store-conformance/fixtures.ts";
import { databaseUrl, dropSchema, freshSchema, openStore, withClient } from "../../support/postgres.ts";
import { startScript, until } from "../../support/processes.ts";
import { ANN, startable } from "./scene.ts";

const TOPIC = "kills/redrive";
const LEASE_MS = 400;
// Five processes start, one after the other.
vi.setConfig({ testTimeout: 120_000 });
type Opened = Awaited<ReturnType<typeof openStore>>;
const CHILD = new URL("./runner-child.mjs", import.meta.url).pathname;

let schema: string;
let store: Opened;
const ids = createIds();
const settings = { leaseMs: LEASE_MS, pollMs: 50 };

beforeAll(async () => {
  schema = freshSchema();
  store = await openStore({ schema });
  await store.topics.put(definition(TOPIC), "code");
});

afterAll(async () => {
  await store.close();
  await dropSchema(schema);
});

function redrivesOn(on: Opened) {
  const fixed = { events: createEvents(), ids, clock: systemClock, serves: () => true, checkPayload: () => {} };
  const made = createRedrives({ recovery: on.recovery, store: on, owner: `test-${ids()}`, settings, ...fixed });
  const parts = { store: on, owner: `test-${ids()}`, random: systemRandom, ...fixed };
  return { ...made, runner: startable(made.runner, (jobs) => startMaintenance({ ...parts, jobs })) };
}

/** Dead letters from the start: a direct try was refused for good. */
async function die(count: number, code: string): Promise<Map<string, string>> {
  const round = ids();
  const messages = Array.from({ length: count }, (_, n) => {
    const payload = `{"n": ${n}, "odd": "\\u0041 é", "big": 12345678901234567890}`;
    return newMessage(ids(), {
      topic: TOPIC,
      key: `${code}-${n}-${round}`,
      payload,
      directTry: { code, error: "refused", rejected: true },
    });
  });
  await store.enqueue(messages);
  return new Map(messages.map(({ id, payload }) => [id, payload]));
}

async function attempt(settlement: typeof DELIVERED): Promise<void> {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: 500 }));
  const claimed = await store.claim({ owner: "worker", leaseMs: 30_000, lanes });
  const settles = claimed.map(({ id, claim, attempt }) => ({ id, claim, attempt, durationMs: 1, settlement }));
  if (settles.length > 0) await store.settle(settles);
}

describe("fault 42: a redrive whose process is killed", () => {
  it("fault 42: 1,000 dead letters, four kills at random items: each is replayed exactly once, its payload as it was", async () => {
    const payloads = await die(1_000, "killed");
    const operations = redrivesOn(store);
    const request = {
      ...{ select: { topic: TOPIC, errorCode: "killed" }, reason: "fault 42", idempotencyKey: "fault-42" },
      ...{ canary: 0, ratePerSecond: 400, rampFrom: 400 },
    };
    const twice = await Promise.all([operations.startRedrive(request, ANN), operations.startRedrive(request, ANN)]);
    const [{ redrive }] = twice;
    expect(new Set(twice.map((one) => one.redrive.redriveId)).size, "pressed twice").toBe(1);

    const start = () => startScript(CHILD, { url: databaseUrl(), schema, settings });
    for (let kill = 0; kill < 4; kill++) {
      const victim = await start();
      const after = 1 + Math.floor(Math.random() * 3);
      // Before or after the write: neither may lose or repeat anything.
      const word = kill % 2 === 0 ? "sent" : "sending";
      await victim.fact(() => victim.facts.filter(({ type }) => type === word).length >= after);
      await victim.end("SIGKILL");
    }
    const { counts } = await operations.redrive(redrive.redriveId);
    expect(counts.waiting, "the kills came in the middle").toBeGreaterThan(0);
    expect(counts.sent, "and something had been sent").toBeGreaterThan(0);
    const last = await start();
    await until("all are sent and delivered", async () => {
      await attempt(DELIVERED);
      return (await operations.redrive(redrive.redriveId)).status === "done";
    });
    expect((await last.end("SIGTERM")).code).toBe(0);

    expect((await operations.redrive(redrive.redriveId)).counts).toMatchObject({
      selected: 1_000,
      healed: 1_000,
      failed: 0,
      skipped: 0,
    });
    const rows = await withClient((client) =>
      client.query(`select message_id::text as id, count(*)::int as replays from "${schema}".provenance group by 1`),
    );
    const replays = new Map(rows.rows.map((row: { id: string; replays: number }) => [row.id, row.replays]));
    const page = await store.list({ topic: TOPIC, limit: 1_000 });
    const found = page.data.filter(({ id }) => payloads.has(id));
    expect(found).toHaveLength(1_000);
    for (const { id, generation, payload, status } of found) {
      expect([id, status, generation, replays.get(id)]).toEqual([id, "delivered", 1, 1]);
      expect(payload).toBe(payloads.get(id));
    }
    expect((await operations.startRedrive(request, ANN)).created, "pressed again when it is over").toBe(false);
  });

  it("fault 42: into a receiver that is still broken it stops at the canary, and the rest stays a dead letter", async () => {
    const payloads = await die(100, "broken");
    const operations = redrivesOn(store);
    operations.runner.start();
    const { redrive } = await operations.startRedrive(
      { select: { topic: TOPIC, errorCode: "broken" }, reason: "too early", rampFrom: 50 },
      ANN,
    );
    await until("it stopped", async () => {
      await attempt(dead());
      return (await operations.redrive(redrive.redriveId)).status === "stopped";
    });
    await operations.runner.stop();
    const { counts, statusReason } = await operations.redrive(redrive.redriveId);
    expect(counts).toMatchObject({ failed: 5, waiting: 95, sent: 0 });
    expect(statusReason).toContain("5 of 5 of the canary failed");
    const generations = await Promise.all([...payloads.keys()].map(async (id) => (await store.get(id))?.generation));
    expect(generations.filter((generation) => generation === 0)).toHaveLength(95);
  });
});
