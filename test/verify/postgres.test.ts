/**
 * Conservation of the PostgreSQL store: each way in which a message can be lost, doubled or changed is found, and nothing is reported before.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ConservationReport } from "../../src/store/conservation.ts";
import { KEYED, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { MONEY, type VerifyScene, verifyScene } from "./scene.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
let scene: VerifyScene;

beforeAll(async () => {
  scene = await verifyScene();
});
beforeEach(() => scene.empty());
afterAll(() => scene.close());

const kinds = (report: ConservationReport): string[] => [...new Set(report.divergences.map(({ kind }) => kind))].sort();
const named = (report: ConservationReport, kind: string): string[] =>
  report.divergences.filter((one) => one.kind === kind).flatMap(({ ids }) => ids);

/** Messages of three hours ago, so that their hour can be sealed, which the second pass does. */
async function sealedHour(count = 4): Promise<string[]> {
  const ids = await scene.accept(count, { topic: MONEY, payload: '{"amount_micro":10}' }, new Date(Date.now() - 3 * HOUR));
  await scene.settle(await scene.claim(count));
  await scene.verify();
  const report = await scene.verify();
  expect(report).toMatchObject({ state: "whole", totals: { sealed: 1 } });
  return ids;
}

async function whole(): Promise<void> {
  const report = await scene.verify();
  expect(report.divergences).toEqual([]);
  expect(report.state).toBe("whole");
}

describe("a store with everything in it", () => {
  it("is whole, says how much is where, and stays so as messages move on", async () => {
    await scene.everything();
    const report = await scene.verify();
    expect(report.divergences).toEqual([]);
    expect(report.state).toBe("whole");
    expect(report.totals).toMatchObject({ accepted: 28, delivered: 6, resolved: 1, discarded: 1, live: 20, archived: 0 });
    await scene.everything();
    const again = await scene.verify("full");
    expect(again.divergences).toEqual([]);
    expect(again.totals).toMatchObject({ accepted: 56, live: 40 });
    const reopened = await scene.client.query("select id::text from dead_letter where resolution = 1 limit 1");
    await scene.store.home.transaction("test", ({ intervene }) =>
      intervene("reopen", [{ id: reopened.rows[0].id }], { actor: "test", reason: null }, {}),
    );
    expect(await scene.verify()).toMatchObject({ state: "whole", totals: { accepted: 56, resolved: 1, live: 41 } });
  });
});

describe("of what lives", () => {
  it("finds a ready row that was deleted, by its id, and is whole when it is back", async () => {
    const [id] = await scene.accept(5);
    const [ordered] = await scene.accept(2, { topic: KEYED, orderingKey: "k" });
    await whole();
    const row = await scene.client.query("select * from ready where id = $1", [id]);
    await scene.harm("delete from ready where id = $1", [id]);
    await scene.harm("delete from ready_ordered where id = $1", [ordered]);
    const report = await scene.verify();
    expect(report.state).toBe("broken");
    expect(kinds(report)).toEqual(["no_state"]);
    expect(named(report, "no_state")).toEqual(expect.arrayContaining([id, ordered]));
    expect(report.divergences.find(({ topic }) => topic === PLAIN)).toMatchObject({ count: 1, tenantId: null });
    const { due, lane_id, attempts, base, bytes } = row.rows[0];
    await scene.harm("insert into ready (due, id, lane_id, attempts, base, bytes) values ($1, $2, $3, $4, $5, $6)", [
      due,
      id,
      lane_id,
      attempts,
      base,
      bytes,
    ]);
    expect(named(await scene.verify(), "no_state")).toEqual([ordered]);
  });

  it("finds a message row that was deleted, with its ready row and without, claimed and dead", async () => {
    const [alone, both, other] = (await scene.accept(6)) as [string, string, string];
    await whole();
    await scene.harm("delete from message where id = any ($1)", [[alone, both]]);
    await scene.harm("delete from ready where id = $1", [both]);
    const claimed = await scene.claim(10);
    expect(claimed.map(({ id }) => id)).toContain(other);
    await scene.harm("delete from message where id = $1", [other]);
    const report = await scene.verify();
    expect(named(report, "message_gone")).toContain(both);
    expect(named(report, "state_without_message").sort()).toEqual([alone, other].sort());
  });

  it("finds a state doubled: waiting and dead, waiting and claimed, waiting and delivered", async () => {
    await scene.accept(1, { tenantId: "a" });
    const [delivered] = await scene.claim(1);
    await scene.settle([delivered!]);
    await scene.accept(2);
    const [claimed, other] = await scene.claim(2);
    await whole();
    const again = (id: string) =>
      scene.harm("insert into ready (due, id, lane_id) select 'infinity', id, lane_id from message where id = $1", [id]);
    await again(delivered!.id);
    await again(claimed!.id);
    await scene.harm("insert into dead_letter (id, lane_id, attempts) select id, lane_id, 1 from message where id = $1", [
      other!.id,
    ]);
    const report = await scene.verify();
    expect(kinds(report)).toEqual(["state_doubled"]);
    expect(named(report, "state_doubled").sort()).toEqual([delivered!.id, claimed!.id, other!.id].sort());
  });

  it("finds a payload changed and money changed, also of what is delivered", async () => {
    const [changed] = await scene.accept(3);
    const [dear] = await scene.accept(3, { topic: MONEY, payload: '{"amount_micro":10.10}' });
    await scene.accept(2, { topic: MONEY, tenantId: "done", payload: '{"amount_micro":7}' });
    const done = (await scene.claim(20)).filter(({ tenantId }) => tenantId === "done");
    await scene.settle(done);
    await whole();
    await scene.harm(`update message set payload = '{"else":1}' where id = $1`, [changed]);
    await scene.harm(`update message set payload = '{"amount_micro":10.11}' where id = any ($1)`, [[dear, done[0]!.id]]);
    const report = await scene.verify();
    expect(named(report, "payload_changed")).toEqual([changed]);
    expect(named(report, "money_changed")).toEqual([dear]);
    expect(report.divergences.find(({ kind, tenantId }) => kind === "money_changed" && tenantId === "done")).toMatchObject({
      detail: "14 was accepted, 17.11 is here or went with retention",
    });
  });

  it("finds what is behind row 501 and row 1,001, and says how many there are", async () => {
    await scene.accept(1_500);
    await whole();
    await scene.harm("delete from ready where id in (select id from ready order by id offset 500)");
    const report = await scene.verify();
    expect(report.divergencesTotal).toBe(1_000);
    expect(report.divergences.reduce((sum, { count }) => sum + count, 0)).toBe(1_000);
    expect(report.divergences.every(({ ids }) => ids.length <= 100)).toBe(true);
  });
});

describe("of what is settled", () => {
  it("finds a delivered message's row deleted, and names it", async () => {
    const [gone] = await sealedHour();
    const [today] = await scene.accept(2);
    await scene.settle(await scene.claim(2));
    await whole();
    await scene.harm("delete from message where id = $1", [today]);
    const report = await scene.verify();
    expect(kinds(report)).toEqual(["message_gone"]);
    expect(report.divergences[0]).toMatchObject({ topic: PLAIN, count: 1, ids: [today] });
    await scene.harm("delete from message where id = $1", [gone]);
    expect(await scene.verify("full")).toMatchObject({ divergencesTotal: 2 });
  });

  it("finds ids swapped at equal counts", async () => {
    const [first] = await scene.accept(3);
    await scene.settle(await scene.claim(3));
    await whole();
    const swapped = scene.id();
    await scene.harm("update message set id = $2 where id = $1", [first, swapped]);
    await scene.harm("update attempt set message_id = $2 where message_id = $1", [first, swapped]);
    const report = await scene.verify();
    expect(report.state).toBe("broken");
    expect(kinds(report)).toEqual(["message_gone"]);
    // As the numbers would have it if the swapped one had been there from the start.
    await scene.harm("update conservation_bucket set accepted_n = accepted_n - 1, delivered_n = delivered_n - 1");
    expect(kinds(await scene.verify())).toContain("ids_swapped");
  });

  it("finds a partition that was dropped by hand, and not one that retention took", async () => {
    await sealedHour();
    await scene.accept(2);
    await scene.verify();
    await scene.settle(await scene.claim(1));
    const later = new Date(Date.now() + 3 * DAY);
    expect(await scene.store.prune({ keptMs: 1_000, limit: 10_000, now: later })).toBe(5);
    const pruned = await scene.verify("full");
    expect(pruned.divergences).toEqual([]);
    expect(pruned.totals).toMatchObject({ accepted: 6, archived: 5, live: 1 });
    await scene.settle(await scene.claim(1));
    expect(await scene.store.prune({ keptMs: 0, limit: 10_000, now: later })).toBe(1);
    expect(await scene.verify("full")).toMatchObject({ state: "whole", totals: { archived: 6, live: 0 } });
    await scene.accept(3);
    const day = await scene.client.query("select tableoid::regclass::text as name from message limit 1");
    await scene.settle(await scene.claim(3));
    await scene.verify();
    await scene.harm(`drop table ${day.rows[0].name}`);
    const report = await scene.verify();
    expect(kinds(report)).toContain("day_dropped");
  });

  it("finds a sealed bucket edited, a seal edited, and the end of the chain cut off", async () => {
    await sealedHour();
    await scene.harm("update conservation_bucket set accepted_money = 41 where sealed is not null");
    expect(kinds(await scene.verify())).toEqual(["seal_edited"]);
    await scene.harm("update conservation_bucket set accepted_money = 40 where sealed is not null");
    await whole();
    await scene.harm("update conservation_seal set n = 3");
    expect(kinds(await scene.verify())).toEqual(["seal_edited"]);
    await scene.harm("delete from conservation_seal");
    expect(kinds(await scene.verify())).toEqual(["seal_edited"]);
  });

  it("finds an account that was edited before it was sealed", async () => {
    await scene.accept(3);
    await whole();
    await scene.harm("update conservation_bucket set accepted_n = 2, accepted_hash = 0");
    expect(kinds(await scene.verify())).toContain("account_unbalanced");
  });
});
