/**
 * Our process killed with SIGKILL at each step of finalize and of a replay, in a loop with a seed (DF-35): on a real Redis, on PostgreSQL, and
 * on both with a journal below while the store is away. FAULT_SEED repeats a run; MAKEGOOD_SOAK=1 makes it the long version.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { TOPIC } from "../../src/presets/settlement/topic.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { createRedisDLQStore } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import type { Store } from "../../src/store/store.ts";
import { freshDirectory } from "../journal/support.ts";
import { databaseUrl, dropSchema, openStore, withClient } from "../support/postgres.ts";
import { type Billing, startBilling } from "./billing.ts";
import { type KillLoop, killLoop, type Step, step } from "./kill-loop.ts";
import { type RedisServer, startRedis } from "./redis.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const ROUNDS = soak ? 20 : 1;
const SEED = Number(process.env.FAULT_SEED ?? 20_261_116);
vi.setConfig({ testTimeout: soak ? 3_600_000 : 120_000 });

let redis: RedisServer;
let store: Store & { readonly schema: string };
let billing: Billing;
beforeAll(async () => {
  [redis, billing, store] = await Promise.all([startRedis(), startBilling(), openStore()]);
});
afterAll(async () => {
  await billing[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
  await store.close();
  await dropSchema(store.schema);
});

type Where = Pick<KillLoop, "child" | "kept" | "timePasses">;

const onDisk = async (directory: string, id: string): Promise<boolean> =>
  (await readJournal({ directory })).entries.some(({ entry, state }) => state === "waiting" && entry?.message.key === id);

/** Time is the clock of each child. */
function onRedis(journalDir?: string): Where {
  const reader = createRedisDLQStore(redis.connect());
  return {
    child: { kind: "port", redisPort: redis.port, journalDir },
    kept: async (id) => (await reader.get(id)) !== null || (journalDir !== undefined && (await onDisk(journalDir, id))),
    timePasses: async () => undefined,
  };
}

/** Time is the database's: an hour passes for what waits and for what is leased. */
function onPostgres(journalDir?: string): Where {
  return {
    child: { kind: "store", url: databaseUrl(), schema: store.schema, journalDir },
    async kept(id) {
      const { data } = await store.list({ topic: TOPIC, key: id, limit: 1 });
      return data.length > 0 || (journalDir !== undefined && (await onDisk(journalDir, id)));
    },
    async timePasses() {
      await withClient(async (client) => {
        // Rows of `ready` are never updated by anybody else, so the trigger that says so is put to sleep.
        await client.query("set session_replication_role = replica");
        await client.query(`update "${store.schema}".ready set due = due - interval '1 hour'`);
        await client.query(`update "${store.schema}".lease set until = until - interval '1 hour'`);
      });
      await store.topics.reset(TOPIC);
      // The presence of the child before runs out.
      if (journalDir !== undefined) await sleep(400);
    },
  };
}

async function rounds(where: () => Promise<Where> | Where, steps: readonly Step[]): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const seed = SEED + round;
    if (soak) process.stdout.write(`FAULT_SEED=${seed}: ${steps.length} kills\n`);
    await killLoop({ billing, steps, seed, ...(await where()) });
  }
}

const SEND = ["sign:before", "sign:after", "send:during"].map((at) => step(at));
const around = (name: string, how: Omit<Step, "at"> = {}): Step[] =>
  ["before", "during", "after"].map((when) => step(`${name}:${when}`, how));
/** The second entry, so that the first was told. The first write of all is the header of a new file. */
const APPEND = [
  step("write:before", { away: true, nth: 3 }),
  step("datasync:before", { away: true, nth: 2 }),
  step("datasync:after", { away: true, nth: 2 }),
];

describe(`killed at each step (seed ${SEED})`, () => {
  it("DF-35: on Redis: nothing that was told is lost, and each reservation is settled once", async () => {
    const replay = [step("lanes:after"), ...around("claim"), ...around("settle")];
    await rounds(() => onRedis(), [...SEND, ...around("enqueue"), ...replay]);
  });

  it("DF-35: on PostgreSQL: nothing that was told is lost, and each reservation is settled once", async () => {
    await rounds(
      () => onPostgres(),
      [...SEND, ...around("enqueue"), step("lanes:after"), ...around("claim"), ...around("settle")],
    );
  });

  it("DF-35: Redis away, with a journal: what is on disk is found, replayed from there and moved up", async () => {
    const below = ["sign:after", "send:during"].map((at) => step(at, { away: true, idle: true }));
    const [before, during, after] = around("enqueue", { idle: true }) as [Step, Step, Step];
    const [write, synced] = [APPEND.slice(0, 2), APPEND.slice(2)];
    const steps = [
      ...write,
      before,
      ...synced,
      ...below,
      ...synced,
      during,
      ...synced,
      after,
      step("truncate:after", { idle: true }),
    ];
    await rounds(async () => onRedis(await freshDirectory()), steps);
  });

  it("DF-35: PostgreSQL away, with a journal: what is on disk is found and moved up", async () => {
    const up = around("enqueue", { idle: true });
    // The kill before a write leaves nothing behind: it comes last, when there is something to move.
    const append = [...APPEND.slice(1), ...APPEND.slice(0, 1)];
    const steps = up.flatMap((one, i) => [append[i] as Step, one]);
    await rounds(async () => onPostgres(await freshDirectory()), steps);
  });
});

describe("the loop", () => {
  it.each([
    ["a store", "store", step("lanes:after")],
    ["a disk", "disk", APPEND[2] as Step],
  ])("can fail: %s that forgets what it was given is found out", async (_name, forgets, at) => {
    const where = onRedis(forgets === "disk" ? await freshDirectory() : undefined);
    const child = { ...where.child, forgets };
    await expect(killLoop({ billing, steps: [at], seed: SEED, ...where, child })).rejects.toThrow(/readable/);
  });
});
