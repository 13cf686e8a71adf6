/**
 * Reserving: the turn and its quota or neither, once for each turn, one running turn for each chat, and never past a limit however
 * many ask at once.
 */
import assert from "node:assert/strict";
import { refused } from "../store-conformance/fixtures.ts";
import type { UsageScene } from "./scene.ts";

export const reserveCases: Record<string, (scene: UsageScene) => Promise<void>> = {
  "a reserve is a running turn with everything that was said, and its quota": async (scene) => {
    const asked = scene.reservation();
    const result = await scene.usage.reserve(asked, scene.at(5));
    assert.equal(result.kind, "reserved");
    const turn = await scene.usage.turn(asked);
    assert.deepEqual(turn, {
      ...asked,
      state: "running",
      startedAt: scene.at(5).now,
      progressAt: scene.at(5).now,
      settlement: null,
      finalizedAt: null,
      finalizationId: null,
      messageId: null,
    });
    assert.deepEqual(await scene.sums(), [100n, 0n]);
    assert.equal(await scene.messages(), 0);
  },

  "EV-38: the same turn again reserves nothing, another request under its id is a conflict": async (scene) => {
    const asked = scene.reservation({ buckets: [{ name: "total", limitCredits: 100n }] });
    await scene.usage.reserve(asked);
    assert.equal((await scene.usage.reserve(asked)).kind, "exists");
    assert.deepEqual(await scene.sums(), [100n, 0n]);
    await refused("key_conflict", () => scene.usage.reserve({ ...asked, requestId: scene.id() }));
  },

  "EV-38: a chat has one running turn at a time": async (scene) => {
    const first = await scene.running();
    const second = scene.reservation({ chatId: first.chatId });
    assert.deepEqual(await scene.usage.reserve(second), { kind: "chat_busy", turnId: first.turnId });
    assert.deepEqual(await scene.sums(), [100n, 0n]);
    await scene.finalize(first);
    assert.equal((await scene.usage.reserve(second)).kind, "reserved");
  },

  "EV-38: several buckets are reserved together or not at all, and the refusal says which": async (scene) => {
    const buckets = [
      { name: "total", limitCredits: null },
      { name: "tier:premium", limitCredits: 150n },
    ];
    await scene.running(0, { buckets });
    const result = await scene.usage.reserve(scene.reservation({ buckets }));
    assert.deepEqual(result, { kind: "quota_exceeded", bucket: "tier:premium", limitCredits: 150n, usedCredits: 100n });
    assert.deepEqual(
      [await scene.sums("total"), await scene.sums("tier:premium")],
      [
        [100n, 0n],
        [100n, 0n],
      ],
    );
  },

  "EV-38: reserve and settle touch the same rows, also when the period changed in between": async (scene) => {
    const old = await scene.running(0, { period: "2026-01" });
    await scene.running(1, { period: "2026-02" });
    await scene.finalize(old);
    assert.deepEqual(
      [await scene.sums("total", "2026-01"), await scene.sums("total", "2026-02")],
      [
        [0n, 60n],
        [100n, 0n],
      ],
    );
  },

  "a tenant's own quota and a user's are different rows": async (scene) => {
    await scene.running(0, { userId: null });
    assert.deepEqual(await scene.sums(), [0n, 0n]);
    const [row] = await scene.usage.quota({ tenantId: scene.tenantId, userId: null, period: "2026-01" });
    assert.equal(row?.reservedCredits, 100n);
  },

  "twenty at once never pass the limit": async (scene) => {
    const buckets = [
      { name: "total", limitCredits: 520n },
      { name: "tier:premium", limitCredits: null },
    ];
    const other = (await scene.another?.()) ?? scene.usage;
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 ? other : scene.usage).reserve(scene.reservation({ buckets }))),
    );
    assert.equal(results.filter(({ kind }) => kind === "reserved").length, 5);
    assert.equal(results.filter(({ kind }) => kind === "quota_exceeded").length, 15);
    assert.deepEqual(await scene.sums(), [500n, 0n]);
  },

  "twenty reserves of one turn are one": async (scene) => {
    const asked = scene.reservation();
    const results = await Promise.all(Array.from({ length: 20 }, () => scene.usage.reserve(asked)));
    assert.equal(results.filter(({ kind }) => kind === "reserved").length, 1);
    assert.deepEqual(await scene.sums(), [100n, 0n]);
  },
};
