/**
 * Conservation of the Redis store: the cases of every store, and what only this one has: lanes, leases and sets that come apart, a process of the version before beside it, and
 * sealing in slices.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { dead, KEYED, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { startRedis } from "../support/redis-server.ts";
import { conservationCases, kinds, MONEY, named, wholeNow } from "./cases.ts";
import { type RedisVerifyScene, redisVerifyScene } from "./redis-scene.ts";

const HOUR = 3_600_000;
const server = await startRedis();
const textOf = (name: string): string => readFileSync(new URL(`../support/version-before/${name}`, import.meta.url), "utf8");

/** As the version before accepts, with its own script. */
async function acceptBefore({ ask, prefix, id }: RedisVerifyScene, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, id);
  const root = `{${prefix}}:`;
  for (const one of ids) {
    const keys = ["dedupe", "lanes", "accepted", "waiters", `m:${one}`, `t:${PLAIN}`].map((name) => root + name);
    const args = [root, "", "old", "", "1", PLAIN, "", "0", "", "1", "", "", "{}"];
    await ask("EVAL", textOf("enqueue.lua"), keys.length, ...keys, ...args);
  }
  return ids;
}

/** As retention of the version before takes what is settled. */
const pruneBefore = ({ ask, prefix }: RedisVerifyScene) =>
  ask("EVAL", textOf("prune.lua"), 0, `{${prefix}}:`, Date.now() + HOUR, "old0000000000000", 0, 1_000, 0, "", "", "");

conservationCases(
  () => redisVerifyScene(server.url),
  (of) => {
    it("every way in writes the intake: alone, in a batch, in an order, dead from the start, and what is moved here", async () => {
      const { accept, ask, store, id } = of();
      const alone = await accept(1);
      const batch = await accept(3, { tenantId: "t" });
      const ordered = await accept(2, { topic: KEYED, orderingKey: "k" });
      const died = await accept(1, { directTry: { rejected: true, code: null, error: "no" } });
      const written = async () =>
        ((await ask("LRANGE", "@intake", 0, -1)) as string[]).flatMap((entry) => entry.split("\u0000").slice(3));
      expect((await written()).sort()).toEqual([...alone, ...batch, ...ordered, ...died].sort());
      const { messages } = await store.movable.read({ all: true, limit: 10, bytesMax: 10_000 });
      const moved = { ...messages[0]!, id: id(), key: null };
      expect(await store.movable.put([moved])).toMatchObject([{ kind: "put" }]);
      expect((await written()).at(-1)).toBe(moved.id);
      expect(await of().verify()).toMatchObject({ state: "whole", totals: { accepted: 8 } });
      expect(await written()).toEqual([]);
    });

    describe("what scripts write together", () => {
      it("and comes apart is found: a lane, a set, a lease, a line of an order, a dead letter", async () => {
        const { accept, claim, settle, ask, verify } = of();
        await accept(1, { tenantId: "l" });
        await settle(await claim(1), dead());
        const [flying] = (await accept(2)) as [string];
        const [, second] = (await accept(2, { topic: KEYED, orderingKey: "k" })) as [string, string];
        await accept(1, { topic: MONEY, payload: '{"amount_micro":1}' });
        const leased = (await claim(9)).find(({ topic }) => topic === MONEY)!;
        await wholeNow(of());
        const [died] = (await ask("ZRANGE", `@s:o:${PLAIN}`, 0, -1)) as [string];
        expect(died).toBeDefined();
        await ask("ZREM", `@s:i:${PLAIN}`, flying);
        await ask("ZREM", `@o:o:0:${KEYED}:k`, second);
        await ask("HDEL", `@e:${leased.claim.lease}`, leased.id);
        await ask("ZREM", `@s:o:${PLAIN}`, died);
        const report = await verify();
        expect(kinds(report)).toEqual(["no_state"]);
        expect(named(report, "no_state").sort()).toEqual([flying, second, leased.id, died].sort());
      });

      it("a ready entry alone that is removed is found before reconciliation mends it, and not after", async () => {
        const { accept, ask, verify, store } = of();
        const [id] = (await accept(3)) as [string];
        await wholeNow(of());
        await ask("ZREM", `@l:u0:0:${PLAIN}:`, id);
        expect(named(await verify(), "no_state")).toEqual([id]);
        expect((await store.quarantined(true)).mended).toBe(1);
        await wholeNow(of());
      });

      it("a message of another hand is more than was accepted, and an open id that is struck out is named", async () => {
        const { accept, ask, verify, id } = of();
        const [first] = (await accept(2)) as [string];
        await wholeNow(of());
        const forged = id();
        await ask("COPY", `@m:${first}`, `@m:${forged}`);
        await ask("HDEL", `@m:${forged}`, "q");
        for (const set of [`@s:p:${PLAIN}`, `@l:u0:0:${PLAIN}:`]) await ask("ZADD", set, 0, forged);
        const report = await verify();
        expect(kinds(report)).toEqual(["more_than_accepted"]);
        expect(named(report, "more_than_accepted")).toEqual([forged]);
        const [member] = (await ask("ZRANGEBYLEX", "@books:open", `[${first}|`, `(${first}}`)) as [string];
        await ask("ZREM", "@books:open", member);
        expect(named(await verify(), "account_unbalanced")).toEqual([first]);
      });

      it("a settled message that is gone with all its traces is counted, by its bucket", async () => {
        const { accept, claim, settle, ask, verify } = of();
        const [id] = (await accept(3, { tenantId: "t" })) as [string];
        await settle(await claim(3));
        await wholeNow(of());
        await ask("DEL", `@m:${id}`);
        for (const set of [`@s:d:${PLAIN}`, "@settled"]) await ask("ZREM", set, id);
        const [found] = (await verify()).divergences;
        expect(found).toMatchObject({ kind: "message_gone", topic: PLAIN, tenantId: "t", count: 1, ids: [] });
        expect(found?.detail).toBe("3 were accepted, 2 are here and 0 went with retention");
      });

      it("more than a thousand dead letters that are removed are all counted", async () => {
        const { accept, claim, settle, verify, hands } = of();
        const ids = [...(await accept(1_000)), ...(await accept(1))];
        await settle(await claim(1_001), dead());
        await wholeNow(of());
        await hands.undie(ids);
        expect(await verify()).toMatchObject({ divergencesTotal: 1_001, divergences: [{ kind: "no_state", count: 1_001 }] });
      });
    });

    describe("the version before", () => {
      it("what it left is counted once, and whole from then on", async () => {
        const { accept, claim, settle, ask, verify } = of();
        await accept(5);
        await settle(await claim(2));
        // As if none of it had ever been counted.
        await ask("DEL", "@intake");
        expect(await of().store.conservation.report()).toBeNull();
        const report = await verify();
        expect(report).toMatchObject({ state: "whole", divergences: [], totals: { accepted: 5, delivered: 2, live: 3 } });
        const [id] = (await ask("ZRANGE", `@s:p:${PLAIN}`, 0, 0)) as [string];
        await ask("DEL", `@m:${id}`);
        expect(await verify()).toMatchObject({
          divergencesTotal: 1,
          divergences: [{ kind: "state_without_message", ids: [id] }],
        });
      });

      it("beside us raises no alarm: what it accepts is counted late, in slices as well", async () => {
        const { accept, claim, settle, verify, store } = of();
        await accept(3);
        await wholeNow(of());
        await acceptBefore(of(), 4);
        expect(await verify()).toMatchObject({ state: "whole", totals: { accepted: 7, live: 7 } });
        await acceptBefore(of(), 2);
        await settle(await claim(9));
        for (let i = 0; i < 20; i++) {
          await store.conservation.pass({ reach: "slice", budgetMs: 50 });
          const { divergences, totals } = await store.conservation.conclude({});
          expect(divergences).toEqual([]);
          if (totals?.delivered === 9) break;
        }
        expect(await verify("full")).toMatchObject({ state: "whole", totals: { accepted: 9, delivered: 9 } });
      });

      it("that accepts, and whose retention takes, is told as a limit where it cannot be proven", async () => {
        const { accept, claim, settle, verify, ask } = of();
        await accept(3);
        await wholeNow(of());
        await settle(await claim(3));
        await verify();
        await acceptBefore(of(), 2);
        await settle(await claim(2));
        await pruneBefore(of());
        expect(await ask("HGET", "@pruned", PLAIN)).toBe("5");
        const first = await verify();
        expect([first.state, first.divergences]).toEqual(["unknown", []]);
        expect(first.reason).toMatch(/a process of the version before accepted 2 messages that are not counted yet/);
        const last = await verify();
        expect([(await verify()).state, last.divergences]).toEqual(["whole", []]);
        expect(last.limits.join(" ")).toMatch(/3 messages that a process of the version before took by retention/);
        expect((await verify()).limits.join(" ")).toMatch(/2 messages that a process of the version before accepted were gone/);
      });
    });

    describe("slices", () => {
      it("seal an hour that has cleared, also where ids are of clocks that are days off, and retention takes the accounts with it", async () => {
        const { accept, claim, settle, store, ask } = of();
        const then = new Date(Date.now() - 3 * HOUR);
        await accept(3, { topic: MONEY, payload: '{"amount_micro":0.1}' }, then);
        await accept(2, { tenantId: "far" }, new Date(Date.now() - 30 * HOUR));
        await settle(await claim(5));
        let sealed = 0;
        for (let i = 0; i < 30 && sealed < 2; i++) {
          await store.conservation.pass({ reach: "slice", budgetMs: 50 });
          sealed = (await store.conservation.conclude({})).totals?.sealed ?? 0;
        }
        expect(await store.conservation.report()).toMatchObject({
          state: "whole",
          totals: { sealed: 2, buckets: 2, accepted: 5 },
        });
        expect(await store.prune({ keptMs: 0, limit: 100, now: new Date(Date.now() + HOUR) })).toBe(5);
        expect((await ask("KEYS", "@books:b:*")) as string[]).toEqual([]);
        expect(await ask("ZCARD", "@books:open")).toBe(0);
        expect(await of().verify("full")).toMatchObject({
          state: "whole",
          totals: { accepted: 5, archived: 5, buckets: 0, live: 0 },
        });
        const [ids] = [await accept(1, {}, then)];
        expect(await of().verify("full")).toMatchObject({ state: "whole", totals: { accepted: 6, live: 1 } });
        expect(await store.conservation.whereabouts(ids)).toEqual(["live"]);
      });
    });
  },
);
