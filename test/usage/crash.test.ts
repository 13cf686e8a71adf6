/**
 * DO-14, OBX-14: kill -9 of the finalising process before each of its statements, and after the last. Whatever the moment, the turn
 * is either untouched or whole, the watchdog finishes what was left, and in the end there are one message and one debit.
 */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Turn } from "../../src/store/usage.ts";
import { startableDist } from "../support/build.ts";
import { killedAtItsWord } from "../support/killed-at-its-word.ts";
import { databaseUrl } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { minutes, usageStage } from "./scene.ts";

const CHILD = fileURLToPath(new URL("./finalize-child.mjs", import.meta.url));
const STATEMENTS_MAX = 20;

const ref = ({ tenantId, turnId }: Turn) => ({ tenantId, turnId });

describe("a finaliser is killed", () => {
  it("DO-14: before each statement: nothing or all of it, and the watchdog completes the rest", {
    timeout: 120_000,
  }, async () => {
    await using stage = await usageStage();
    const dist = await startableDist();
    const points: string[] = [];
    for (let n = 1; n <= STATEMENTS_MAX; n++) {
      const [warm, turn] = [await stage.running(), await stage.running()];
      const options = { dist, url: databaseUrl(), schema: stage.schema, warm: ref(warm), turn: ref(turn), stopBefore: n };
      const end = await killedAtItsWord(CHILD, options);
      const messages = (await stage.payloads()).filter((payload) => payload.turn_id === turn.turnId);
      const state = (await stage.usage.turn(turn))?.state;
      points.push(end.type === "done" ? "after the commit" : `before ${end.before}`);
      expect([state, messages.length], points.at(-1)).toEqual(end.type === "done" ? ["completed", 1] : ["running", 0]);
      expect(await stage.usage.verify(), points.at(-1)).toEqual([]);
      // The server notices the dead client in its own time, and until then keeps the turn's row locked.
      await until("the turn is final", async () => {
        await stage.usage.sweep(minutes(10));
        return (await stage.usage.turn(turn))?.state !== "running";
      });
      expect((await stage.payloads()).filter((payload) => payload.turn_id === turn.turnId)).toHaveLength(1);
      if (end.type === "done") break;
    }
    expect(points.at(-1)).toBe("after the commit");
    // begin, lock, message, quota lock, settle, commit: fewer would mean that the statements were not seen.
    expect(points.length).toBeGreaterThanOrEqual(7);
    expect(points.filter((point) => /begin|commit/.test(point)).length).toBeGreaterThanOrEqual(3);
    expect(await stage.usage.verify()).toEqual([]);
    const [reserved] = await stage.sums();
    expect(reserved).toBe(0n);
  });
});
