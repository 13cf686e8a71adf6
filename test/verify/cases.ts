/**
 * What every store that keeps accounts must find, and must not report: the same cases for each engine. How a store is harmed past its ways in is the engine's own.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ClaimedMessage, NewMessage } from "../../src/message/message.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import type { Beside, ConservationReport, PassOptions, WithConservation } from "../../src/store/conservation.ts";
import type { Store } from "../../src/store/store.ts";
import { DELIVERED, dead, KEYED, newMessage, PLAIN, retry } from "../../src/testing/store-conformance/fixtures.ts";
import { settles } from "../../src/testing/store-conformance/scene.ts";

export const MONEY = "test/money";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** What a person, a program or a defect may do to the data. */
export interface Hands {
  /** Takes away that it waits; of one with an order, too. Answers with what brings the first one back. */
  unready(ids: readonly string[]): Promise<() => Promise<void>>;
  /** Deletes the message, and leaves where it is. */
  unwrite(ids: readonly string[]): Promise<void>;
  /** Lets it wait beside what it is. */
  waitToo(id: string): Promise<void>;
  /** Makes it a dead letter beside what it is. */
  dieToo(id: string): Promise<void>;
  undie(ids: readonly string[]): Promise<void>;
  repay(ids: readonly string[], payload: string): Promise<void>;
  rename(id: string, to: string): Promise<void>;
  /** Lets the numbers of a bucket agree, where a message has got another id. */
  evenOut(): Promise<void>;
  editAccount(): Promise<void>;
  editSealedMoney(amount: string): Promise<void>;
  editSeal(): Promise<void>;
  cutSeals(): Promise<void>;
}

export interface CaseScene {
  readonly store: Store & WithConservation;
  readonly id: () => string;
  readonly hands: Hands;
  /** Its enqueued ids. */
  accept(count: number, fields?: Partial<NewMessage>, now?: Date): Promise<string[]>;
  claim(count: number): Promise<ClaimedMessage[]>;
  settle(claimed: readonly ClaimedMessage[], settlement?: Settlement): Promise<void>;
  verify(reach?: PassOptions["reach"], beside?: Record<string, Beside>): Promise<ConservationReport>;
  /** Some of everything: waiting, ordered, claimed, retried, held, dead, resolved, discarded, delivered. */
  everything(): Promise<void>;
  /** As if nothing had ever been accepted, and no pass made. */
  empty(): Promise<void>;
  close(): Promise<void>;
}

export async function claimSome(store: Store, count: number): Promise<ClaimedMessage[]> {
  const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit: count }));
  const claimed = lanes.length > 0 ? await store.claim({ owner: "w", leaseMs: 60_000, lanes }) : [];
  return claimed.slice(0, count);
}

export type Moves = Pick<CaseScene, "accept" | "claim" | "settle">;

export const movesOf = (store: Store, id: () => string): Moves => ({
  async accept(count, fields = {}, now) {
    const messages = Array.from({ length: count }, () => newMessage(fields.id ?? id(), fields));
    await store.enqueue(messages, { now });
    return messages.map((message) => message.id);
  },
  claim: (count) => claimSome(store, count),
  async settle(claimed, settlement = DELIVERED) {
    await store.settle(settles(claimed, settlement));
  },
});

export async function everything({ store, accept, claim, settle }: Pick<CaseScene, "store"> & Moves): Promise<void> {
  const claimOf = async (ids: readonly string[]) => (await claim(1_000)).filter(({ id }) => ids.includes(id));
  await settle(await claimOf(await accept(6, { topic: MONEY, payload: '{"amount_micro":12.50}' })));
  const dying = await accept(6, { tenantId: "a" });
  await settle(await claimOf(dying), dead());
  const by = { actor: "test", reason: null };
  await store.intervene({ id: dying[0] as string, action: "resolve", ...by });
  await store.intervene({ id: dying[1] as string, action: "discard", ...by });
  await store.intervene({ id: dying[2] as string, action: "replay", ...by });
  await settle((await claimOf(await accept(4, { tenantId: "b" }))).slice(0, 2), retry(60_000));
  await accept(3, { topic: KEYED, orderingKey: "k" });
  await accept(5);
  await accept(4, { topic: MONEY, payload: '{"amount_micro":3}' });
}

export const kinds = (report: ConservationReport): string[] => [...new Set(report.divergences.map(({ kind }) => kind))].sort();
export const named = (report: ConservationReport, kind: string): string[] =>
  report.divergences.filter((one) => one.kind === kind).flatMap(({ ids }) => ids);

export async function wholeNow(scene: CaseScene): Promise<void> {
  const report = await scene.verify();
  expect(report.divergences).toEqual([]);
  expect(report.state).toBe("whole");
}

/** Messages of three hours ago, so that their hour can be sealed, which a pass does when no transaction is open that could write into it. */
export async function sealedHour(scene: CaseScene, count = 4): Promise<string[]> {
  const ids = await scene.accept(count, { topic: MONEY, payload: '{"amount_micro":10}' }, new Date(Date.now() - 3 * HOUR));
  await scene.settle(await scene.claim(count));
  for (let sealed = 0; sealed === 0; ) {
    const report = await scene.verify();
    expect(report).toMatchObject({ state: "whole" });
    sealed = report.totals?.sealed ?? 0;
  }
  return ids;
}

export function conservationCases<Scene extends CaseScene>(
  open: () => Promise<Scene>,
  more?: (scene: () => Scene) => void,
): void {
  let scene: Scene;
  beforeAll(async () => {
    scene = await open();
  });
  beforeEach(() => scene.empty());
  afterAll(() => scene.close());
  const whole = () => wholeNow(scene);

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
      expect(again.totals?.oldestOpenHour).toBeInstanceOf(Date);
    });

    it("says where single ids are", async () => {
      const [live, delivered, resolved] = (await scene.accept(3)) as [string, string, string];
      const claimed = await scene.claim(3);
      await scene.settle(claimed.filter(({ id }) => id === delivered));
      await scene.settle(
        claimed.filter(({ id }) => id === resolved),
        dead(),
      );
      expect(await scene.store.conservation.whereabouts([resolved])).toEqual(["dead"]);
      await scene.store.intervene({ id: resolved, action: "resolve", actor: "t", reason: null });
      const asked = [scene.id(), live, delivered, resolved];
      expect(await scene.store.conservation.whereabouts(asked)).toEqual(["unknown", "live", "delivered", "resolved"]);
    });
  });

  describe("of what lives", () => {
    it("finds what waited and waits no more, by its id, and is whole when it is back", async () => {
      const [id, other] = (await scene.accept(5)) as [string, string];
      const [ordered] = (await scene.accept(2, { topic: KEYED, orderingKey: "k" })) as [string];
      await whole();
      const back = await scene.hands.unready([id, ordered]);
      const report = await scene.verify();
      expect(report.state).toBe("broken");
      expect(kinds(report)).toEqual(["no_state"]);
      expect(named(report, "no_state").sort()).toEqual([id, ordered].sort());
      expect(named(report, "no_state")).not.toContain(other);
      expect(report.divergences.find(({ topic }) => topic === PLAIN)).toMatchObject({ count: 1, tenantId: null });
      await back();
      expect(named(await scene.verify(), "no_state")).toEqual([ordered]);
    });

    it("finds a message that was deleted, with all that said where it was and without, claimed and dead", async () => {
      const [alone, both, dying] = (await scene.accept(6)) as [string, string, string];
      await scene.settle(
        (await scene.claim(6)).filter(({ id }) => id === dying),
        dead(),
      );
      const [waiting] = (await scene.accept(1)) as [string];
      await whole();
      await scene.hands.unwrite([alone, both, waiting]);
      await scene.hands.unready([waiting]);
      await scene.hands.undie([dying]);
      const report = await scene.verify();
      expect(named(report, "message_gone")).toEqual([waiting]);
      expect(named(report, "state_without_message").sort()).toEqual([alone, both].sort());
      expect(named(report, "no_state")).toEqual([dying]);
      expect(report.divergences.filter(({ ids }) => ids.length > 0).reduce((sum, { count }) => sum + count, 0)).toBe(4);
    });

    it("finds a state doubled: waiting and dead, waiting and claimed, waiting and delivered", async () => {
      await scene.accept(1, { tenantId: "a" });
      const [delivered] = await scene.claim(1);
      await scene.settle([delivered!]);
      await scene.accept(2);
      const [claimed, other] = await scene.claim(2);
      await whole();
      await scene.hands.waitToo(delivered!.id);
      await scene.hands.waitToo(claimed!.id);
      await scene.hands.dieToo(other!.id);
      const report = await scene.verify();
      expect(kinds(report)).toEqual(["state_doubled"]);
      expect(named(report, "state_doubled").sort()).toEqual([delivered!.id, claimed!.id, other!.id].sort());
    });

    it("finds a payload changed and money changed, also of what is delivered", async () => {
      const [changed] = (await scene.accept(3)) as [string];
      const [dear] = (await scene.accept(3, { topic: MONEY, payload: '{"amount_micro":10.10}' })) as [string];
      await scene.accept(2, { topic: MONEY, tenantId: "done", payload: '{"amount_micro":7}' });
      const done = (await scene.claim(20)).filter(({ tenantId }) => tenantId === "done");
      await scene.settle(done);
      await whole();
      await scene.hands.repay([changed], '{"else":1}');
      await scene.hands.repay([dear, done[0]!.id], '{"amount_micro":10.11}');
      const report = await scene.verify();
      expect(named(report, "payload_changed")).toEqual([changed]);
      expect(named(report, "money_changed")).toEqual([dear]);
      expect(report.divergences.find(({ kind, tenantId }) => kind === "money_changed" && tenantId === "done")).toMatchObject({
        detail: "14 was accepted, 17.11 is here or went with retention",
      });
    });

    it("finds what is behind row 501 and row 1,001, and says how many there are", async () => {
      const ids = [...(await scene.accept(1_000)), ...(await scene.accept(500))].sort();
      await whole();
      await scene.hands.unready(ids.slice(500));
      const report = await scene.verify();
      expect(report.divergencesTotal).toBe(1_000);
      expect(report.divergences.reduce((sum, { count }) => sum + count, 0)).toBe(1_000);
      expect(report.divergences.every(({ ids }) => ids.length <= 100)).toBe(true);
    });
  });

  describe("of what is settled", () => {
    it("finds a delivered message deleted, and names it", async () => {
      const [gone] = (await sealedHour(scene)) as [string];
      const [today] = (await scene.accept(2)) as [string];
      await scene.settle(await scene.claim(2));
      await whole();
      await scene.hands.unwrite([today]);
      const report = await scene.verify();
      expect(kinds(report)).toEqual(["message_gone"]);
      expect(report.divergences[0]).toMatchObject({ topic: PLAIN, count: 1, ids: [today] });
      await scene.hands.unwrite([gone]);
      expect(await scene.verify("full")).toMatchObject({ divergencesTotal: 2 });
    });

    it("finds ids swapped at equal counts", async () => {
      const [first] = (await scene.accept(3)) as [string];
      await scene.settle(await scene.claim(3));
      await whole();
      await scene.hands.rename(first, scene.id());
      expect((await scene.verify()).state).toBe("broken");
      // As the numbers would have it if the swapped one had been there from the start.
      await scene.hands.evenOut();
      expect(kinds(await scene.verify())).toContain("ids_swapped");
    });

    it("reports nothing of what retention took, and counts it", async () => {
      await sealedHour(scene);
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
    });

    it("finds a sealed bucket edited, a seal edited, and the end of the chain cut off", async () => {
      await sealedHour(scene);
      await scene.hands.editSealedMoney("41");
      expect(kinds(await scene.verify())).toEqual(["seal_edited"]);
      await scene.hands.editSealedMoney("40");
      await whole();
      await scene.hands.editSeal();
      expect(kinds(await scene.verify())).toEqual(["seal_edited"]);
      await scene.hands.cutSeals();
      expect(kinds(await scene.verify())).toEqual(["seal_edited"]);
    });

    it("finds an account that was edited before it was sealed", async () => {
      await scene.accept(3);
      await whole();
      await scene.hands.editAccount();
      expect(kinds(await scene.verify())).toContain("account_unbalanced");
    });
  });

  describe("passes", () => {
    it("in slices within a budget come to the same end", async () => {
      const ids = [...(await scene.accept(1_000)), ...(await scene.accept(500))].sort();
      await scene.verify();
      await scene.settle(await scene.claim(700));
      const live = new Set((await scene.store.conservation.whereabouts(ids)).flatMap((at, i) => (at === "live" ? [ids[i]] : [])));
      await scene.hands.unready([...live].slice(-3) as string[]);
      let report = await scene.verify("slice");
      for (let i = 0; i < 60 && !(report.state === "broken" && report.totals?.delivered === 700); i++) {
        await scene.store.conservation.pass({ reach: "slice", budgetMs: 20 });
        report = await scene.store.conservation.conclude({});
      }
      expect(report).toMatchObject({ state: "broken", divergencesTotal: 3, totals: { delivered: 700, live: 800 } });
    });

    it("keep what was found beside the store until it is gone, and what could not be looked at", async () => {
      await scene.accept(1);
      const found = [{ kind: "journal_damaged", count: 2, ids: [], detail: "here" }];
      expect(await scene.verify("whole", { place: { found, unknown: null } })).toMatchObject({
        state: "broken",
        divergencesTotal: 2,
      });
      expect(await scene.store.conservation.report()).toMatchObject({ state: "broken", divergencesTotal: 2 });
      const unknown = await scene.verify("whole", { place: { found: [], unknown: "away" } });
      expect(unknown).toMatchObject({ state: "unknown", reason: "place: away", divergences: [] });
      expect(await scene.verify("whole", { place: { found: [], unknown: null } })).toMatchObject({
        state: "whole",
        reason: null,
      });
    });
  });

  more?.(() => scene);
}
