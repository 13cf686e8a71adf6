/**
 * Finalising: terminal state, debit and message together, for one winner; nothing for all others, and nothing at all when any
 * part fails. Silence is checked at the moment of the write.
 */
import assert from "node:assert/strict";
import { STATE_OF, type Turn, type TurnSettlement } from "../../store/usage.ts";
import { refused } from "../store-conformance/fixtures.ts";
import { RELEASED, SPENT, type UsageScene } from "./scene.ts";

const MINUTE = 60_000;

export const finalizeCases: Record<string, (scene: UsageScene) => Promise<void>> = {
  "OBX-12: the winner's turn is final, its reserve gone, its debit made, its message there": async (scene) => {
    const turn = await scene.running();
    const settlement: TurnSettlement = { ...SPENT, counters: { searches: 2 }, capped: true, reason: "stop" };
    const finalizationId = scene.id();
    const result = await scene.finalize(turn, { settlement, finalizationId, ...scene.at(9) });
    assert.equal(result.kind, "finalized");
    const final = (await scene.usage.turn(turn)) as Turn;
    assert.deepEqual(final, (result as { turn: Turn }).turn);
    const { messageId, ...rest } = final;
    const ended = { state: "completed", settlement, finalizationId, finalizedAt: scene.at(9).now };
    assert.deepEqual(rest, { ...turnFields(turn), ...ended });
    assert.equal((await scene.store.get(messageId as string))?.key, `${turn.turnId}/${turn.requestId}`);
    assert.deepEqual(await scene.sums(), [0n, 60n]);
    assert.equal(await scene.messages(), 1);
  },

  "OBX-13: the second is told what the first did, and changes nothing": async (scene) => {
    const turn = await scene.running();
    await scene.finalize(turn);
    const again = await scene.finalize(turn, { settlement: { ...SPENT, credits: 99n } });
    assert.equal(again.kind, "already");
    assert.equal((again as { turn: Turn }).turn.settlement?.credits, 60n);
    assert.deepEqual([await scene.sums(), await scene.messages()], [[0n, 60n], 1]);
  },

  "OBX-13: fifty at once, one winner, one message, one debit": async (scene) => {
    const turn = await scene.running();
    const other = (await scene.another?.()) ?? scene.usage;
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => scene.finalize(turn, { by: i % 2 ? other : scene.usage })),
    );
    assert.equal(results.filter(({ kind }) => kind === "finalized").length, 1);
    assert.equal(results.filter(({ kind }) => kind === "already").length, 49);
    assert.deepEqual([await scene.sums(), await scene.messages()], [[0n, 60n], 1]);
  },

  "forty turns of one user at once, two buckets each: all add up": async (scene) => {
    const buckets = [
      { name: "total", limitCredits: null },
      { name: "tier:premium", limitCredits: null },
    ];
    const turns: Turn[] = [];
    for (let i = 0; i < 40; i++) turns.push(await scene.running(0, { buckets: i % 2 ? buckets : buckets.toReversed() }));
    const other = (await scene.another?.()) ?? scene.usage;
    const more = Array.from({ length: 20 }, () => scene.usage.reserve(scene.reservation({ buckets })));
    await Promise.all([...turns.map((turn, i) => scene.finalize(turn, { by: i % 2 ? other : scene.usage })), ...more]);
    assert.deepEqual(
      [await scene.sums("total"), await scene.sums("tier:premium")],
      [
        [2_000n, 2_400n],
        [2_000n, 2_400n],
      ],
    );
    assert.equal(await scene.messages(), 40);
  },

  "OBX-14: when the message cannot be handed over, nothing has happened": async (scene) => {
    const turn = await scene.running();
    const broken = () => Promise.reject(new Error("no message today"));
    if (scene.usage.traits.transactions) await assert.rejects(scene.finalize(turn, { hand: broken }), /no message today/);
    else
      await assert.rejects(scene.usage.finalize({ ...turn, finalizationId: scene.id() }, { settle: () => SPENT, hand: broken }));
    assert.equal((await scene.usage.turn(turn))?.state, "running");
    assert.deepEqual([await scene.sums(), await scene.messages()], [[100n, 0n], 0]);
    assert.equal((await scene.finalize(turn)).kind, "finalized");
    assert.equal(await scene.messages(), 1);
  },

  "DO-13: a release charges nothing, gives the reserve back and still has its message": async (scene) => {
    const turn = await scene.running();
    assert.equal((await scene.finalize(turn, { settlement: RELEASED })).kind, "finalized");
    assert.equal((await scene.usage.turn(turn))?.settlement?.method, "released");
    assert.deepEqual([await scene.sums(), await scene.messages()], [[0n, 0n], 1]);
  },

  "OBX-15: each outcome has its state": async (scene) => {
    for (const outcome of ["completed", "failed", "aborted"] as const) {
      const turn = await scene.running();
      await scene.finalize(turn, { settlement: { ...SPENT, outcome, method: "estimated" } });
      assert.equal((await scene.usage.turn(turn))?.state, STATE_OF[outcome]);
    }
  },

  "a turn that nobody reserved is not found": async (scene) => {
    const turn = { ...(await scene.running()), turnId: scene.id() };
    assert.deepEqual(await scene.finalize(turn), { kind: "not_found" });
    assert.equal(await scene.usage.turn(turn), null);
    assert.equal(await scene.messages(), 0);
  },

  "DO-14: silent turns are found, the longest silent first, and progress takes them off the list": async (scene) => {
    const [first, second, third] = [await scene.running(0), await scene.running(10), await scene.running(4 * MINUTE)];
    const silent = async () =>
      (await scene.usage.orphans({ idleMs: 5 * MINUTE, limit: 10, ...scene.at(6 * MINUTE) })).map((o) => o.turnId);
    assert.deepEqual(await silent(), [first.turnId, second.turnId]);
    assert.equal(await scene.usage.progress(first, scene.at(5 * MINUTE)), true);
    assert.deepEqual(await silent(), [second.turnId]);
    await scene.finalize(second);
    assert.equal(await scene.usage.progress(second, scene.at(5 * MINUTE)), false);
    assert.deepEqual(await silent(), []);
    assert.equal((await scene.usage.turn(third))?.state, "running");
  },

  "EV-34: silence is judged again when the turn is finalised": async (scene) => {
    const turn = await scene.running(0);
    await scene.usage.progress(turn, scene.at(5 * MINUTE));
    assert.deepEqual(await scene.finalize(turn, { idleMs: 5 * MINUTE, ...scene.at(6 * MINUTE) }), { kind: "busy" });
    assert.equal((await scene.finalize(turn, { idleMs: 5 * MINUTE, ...scene.at(11 * MINUTE) })).kind, "finalized");
    assert.equal(await scene.messages(), 1);
  },

  "EV-34: a live finaliser and two watchdogs: one of them wins": async (scene) => {
    const other = (await scene.another?.()) ?? scene.usage;
    for (let i = 0; i < 10; i++) {
      const turn = await scene.running(0);
      const watchdog = { idleMs: MINUTE, ...scene.at(10 * MINUTE) };
      const results = await Promise.all([
        scene.finalize(turn, { by: other, ...watchdog }),
        scene.finalize(turn),
        scene.finalize(turn, watchdog),
      ]);
      assert.equal(results.filter(({ kind }) => kind === "finalized").length, 1);
    }
    assert.deepEqual([await scene.sums(), await scene.messages()], [[0n, 600n], 10]);
  },
};

function turnFields({
  state: _state,
  settlement: _settlement,
  finalizedAt: _at,
  finalizationId: _id,
  messageId: _message,
  ...fields
}: Turn) {
  return fields;
}

export const transactionCases: Record<string, (scene: UsageScene) => Promise<void>> = {
  "OBX-14: a rollback leaves neither turn nor reserve": (scene) =>
    inTransaction(scene, async ({ tx, rollback }) => {
      const asked = scene.reservation();
      assert.equal((await scene.usage.reserve(asked, { tx })).kind, "reserved");
      assert.equal(await scene.usage.turn(asked), null);
      await rollback();
      assert.equal(await scene.usage.turn(asked), null);
      assert.deepEqual(await scene.sums(), [0n, 0n]);
    }),

  "OBX-14: a rollback leaves neither debit nor message": (scene) =>
    inTransaction(scene, async ({ tx, rollback }) => {
      const turn = await scene.running();
      assert.equal((await scene.finalize(turn, { tx })).kind, "finalized");
      await rollback();
      assert.equal((await scene.usage.turn(turn))?.state, "running");
      assert.deepEqual([await scene.sums(), await scene.messages()], [[100n, 0n], 0]);
    }),

  "OBX-12: with the caller's commit all of it is there": (scene) =>
    inTransaction(scene, async ({ tx, commit }) => {
      const asked = scene.reservation();
      const reserved = await scene.usage.reserve(asked, { tx });
      await scene.finalize((reserved as { turn: Turn }).turn, { tx });
      assert.equal(await scene.messages(), 0);
      await commit();
      assert.equal((await scene.usage.turn(asked))?.state, "completed");
      assert.deepEqual([await scene.sums(), await scene.messages()], [[0n, 60n], 1]);
    }),

  "EV-34: a watchdog does not wait for a finaliser whose transaction is open": (scene) =>
    inTransaction(scene, async ({ tx, commit }) => {
      const turn = await scene.running();
      await scene.finalize(turn, { tx });
      assert.deepEqual(await scene.finalize(turn, { idleMs: MINUTE, ...scene.at(10 * MINUTE) }), { kind: "busy" });
      await commit();
      assert.equal((await scene.finalize(turn, { idleMs: MINUTE, ...scene.at(10 * MINUTE) })).kind, "already");
    }),
};

export const noTransactionCases: Record<string, (scene: UsageScene) => Promise<void>> = {
  "a store without transactions refuses one": async (scene) => {
    const tx = { query: async () => ({ rows: [] }) };
    const turn = await scene.running();
    await refused("not_a_transaction", () => scene.usage.reserve(scene.reservation(), { tx }));
    await refused("not_a_transaction", () => scene.finalize(turn, { tx }));
  },
};

type Open = Awaited<ReturnType<NonNullable<UsageScene["transaction"]>>>;

/** With a transaction of the caller's that is rolled back at the end unless it was ended before. */
async function inTransaction(scene: UsageScene, run: (open: Open) => Promise<void>): Promise<void> {
  assert.ok(scene.transaction);
  const open = await scene.transaction();
  let ended = false;
  const end = (how: "commit" | "rollback") => async () => {
    if (ended) return;
    ended = true;
    await open[how]();
  };
  try {
    await run({ tx: open.tx, commit: end("commit"), rollback: end("rollback") });
  } finally {
    await end("rollback")();
  }
}
