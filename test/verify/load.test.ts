/**
 * Passes beside everything that moves messages: none of them may report what is only on its way.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { InterventionAction } from "../../src/message/message.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { type ConservationReport, conservationOf } from "../../src/store/conservation.ts";
import { DELIVERED, dead, hold, KEYED, newMessage, PLAIN, RELEASE, retry } from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";
import { beginTransaction, openStore } from "../support/postgres.ts";
import { claimSome, MONEY, type VerifyScene, verifyScene } from "./scene.ts";

const MS = process.env.MAKEGOOD_SOAK ? 120_000 : 5_000;
let scene: VerifyScene;
beforeAll(async () => {
  scene = await verifyScene();
});
beforeEach(() => scene.empty());
afterAll(() => scene.close());

const DAY = 24 * 3_600_000;
const pick = <T>(of: readonly T[]): T => of[Math.floor(Math.random() * of.length)] as T;

it(
  "cries no wolf while messages are accepted, delivered, die, are replayed, resolved, opened again and retired",
  async () => {
    const { store, schema, client } = scene;
    const other = await openStore({ schema });
    const until = systemClock.monotonicMs() + MS;
    const running = (): boolean => systemClock.monotonicMs() < until;
    const old = createIds({ ...systemClock, wallMs: () => systemClock.wallMs() - 4 * DAY });
    const early = createIds({ ...systemClock, wallMs: () => systemClock.wallMs() + 2 * DAY });
    const now = createIds();
    const refused: unknown[] = [];
    let accepted = 0;
    let retired = 0;

    async function produce(make: () => string): Promise<void> {
      // A day that retention has taken is not made again while attempts of what was kept of it are there.
      while (running() && (make !== old || retired === 0)) {
        const messages = Array.from({ length: pick([1, 1, 30]) }, () => {
          const topic = pick([PLAIN, PLAIN, KEYED, MONEY]);
          return newMessage(make(), {
            topic,
            tenantId: pick([null, "a"]),
            orderingKey: topic === KEYED ? pick(["x", "y", "z"]) : null,
            payload: '{"amount_micro":1.5}',
          });
        });
        const inTransaction = Math.random() < 0.3 ? await beginTransaction() : null;
        try {
          if (inTransaction) await inTransaction.tx.query("savepoint s");
          await store.enqueue(messages, inTransaction ? { tx: inTransaction.tx as never } : {});
          await sleep(systemClock, Math.random() * 30);
          const undone = inTransaction !== null && Math.random() < 0.3;
          await (undone ? inTransaction?.rollback() : inTransaction?.commit());
          if (!undone) accepted += messages.length;
        } catch (thrown) {
          refused.push(thrown);
          await inTransaction?.rollback().catch(() => undefined);
        }
      }
    }
    const endings = (): Settlement =>
      pick([DELIVERED, DELIVERED, DELIVERED, retry(0), retry(0, true, 1), dead(), hold(), RELEASE]);
    async function work(by: typeof store): Promise<void> {
      while (running()) {
        const claimed = await claimSome(by, 200);
        const part = claimed.filter(() => Math.random() < 0.95);
        for (const half of [part.slice(0, part.length / 2), part.slice(part.length / 2)])
          await by.settle(half.flatMap((one) => settles([one], endings())));
        if (claimed.length === 0) await sleep(systemClock, 5);
      }
    }
    async function persons(): Promise<void> {
      while (running()) {
        const { rows } = await client.query(
          "(select id::text from dead_letter where resolution < 3 order by random() limit 20) union all (select id::text from ready limit 5)",
        );
        for (const { id } of rows) {
          const action = pick<InterventionAction>(["replay", "replay", "resolve", "discard", "cancel", "reschedule"]);
          await store.intervene({ id, action, actor: "test", reason: null });
          if (Math.random() < 0.3)
            await store.home.transaction("test", ({ intervene }) =>
              intervene("reopen", [{ id }], { actor: "t", reason: null }, {}),
            );
        }
        await sleep(systemClock, 10);
      }
    }
    async function upkeep(): Promise<void> {
      while (running()) {
        await sleep(systemClock, MS / 3);
        retired += await store.prune({ keptMs: 50, limit: 10_000 });
        const lost = await store.reclaim({ owner: "r", leaseMs: 10_000, limit: 100 });
        await store.settle(settles(lost, retry(0)));
      }
    }
    const reports: ConservationReport[] = [];
    async function passes(by: typeof store, reach: "slice" | "whole" | "full"): Promise<void> {
      const conservation = conservationOf(by)!;
      // At least one, however busy the machine is.
      for (let ended = 0; running() || ended === 0; ) {
        try {
          await conservation.pass({ reach, ...(reach === "slice" ? { budgetMs: 100 } : {}) });
          reports.push(await conservation.conclude({}));
          ended++;
        } catch (thrown) {
          if (!/is detached from message/.test(String(thrown))) throw thrown;
        }
      }
    }
    await Promise.all([
      ...[now, old, early].map(produce),
      ...[work(store), work(other), persons(), upkeep()],
      ...[passes(store, "slice"), passes(other, "whole"), passes(other, "full")],
    ]);
    await other.close();
    const last = await scene.verify("full");
    expect([...reports, last].flatMap(({ divergences }) => divergences)).toEqual([]);
    expect(last.state).toBe("whole");
    expect(last.totals?.accepted).toBe(accepted);
    expect(reports.length).toBeGreaterThan(0);
    expect(retired).toBeGreaterThan(0);
    expect(last.totals?.archived).toBe(retired);
    expect(refused.length).toBeLessThan(accepted / 10);
  },
  MS + 60_000,
);
