/** Signatures as documents: stored beside the shipped ones, in effect everywhere at once, refused with every fault; and groups of one cause. */
import { describe, expect, it } from "vitest";
import { ANN, createScene } from "./scene.ts";

const MINE = {
  id: "quasar",
  cause: "outage",
  detail: "passing",
  certainty: 0.99,
  says: "the quasar is refuelled",
  words: ["quasar … empty"],
};
const FAILURE = { errorCode: "E1", errorMessage: "The quasar tank is empty" };

describe("signatures", () => {
  it("a stored one is used in every process, is edited by version, and is gone when it is deleted", async () => {
    const scene = await createScene();
    const other = scene.another();
    const asked = async () => (await other.evaluate(FAILURE)).evaluation;
    expect((await asked()).cause.signature).toBe(null);
    expect(await scene.engine.putCause("quasar", JSON.stringify(MINE), 0, ANN)).toMatchObject({
      ...MINE,
      version: 1,
      enabled: true,
    });
    expect(await asked()).toMatchObject({ cause: { signature: "quasar" }, recommended: { action: "retry_exponential" } });
    const edited = JSON.stringify({ ...MINE, detail: undefined });
    await expect(scene.engine.putCause("quasar", edited, 0, ANN)).rejects.toMatchObject({ code: "version_conflict" });
    await scene.engine.putCause("quasar", edited, 1, ANN);
    expect((await asked()).recommended?.action).toBe("circuit_breaker");
    await scene.engine.deleteCause("quasar", 2, ANN);
    expect((await asked()).cause.signature).toBe(null);
  });

  it("a shipped one is switched off by deleting it, and can be changed", async () => {
    const { engine } = await createScene();
    const deadlock = { errorCode: "http_500", errorMessage: "deadlock detected" };
    await engine.deleteCause("deadlock", 1, ANN);
    expect((await engine.evaluate(deadlock)).evaluation.cause.signature).not.toBe("deadlock");
    const off = (await engine.causes()).find(({ id }) => id === "deadlock");
    expect(off).toMatchObject({ enabled: false, version: 2 });
    await engine.putCause("deadlock", JSON.stringify({ ...off, enabled: true }), 2, ANN);
    expect((await engine.evaluate(deadlock)).evaluation.cause.signature).toBe("deadlock");
  });

  it("a bad one is refused with every fault, and an unknown one is not there", async () => {
    const { engine } = await createScene();
    const bad = { ...MINE, cause: "weather", words: ["("] };
    const refused = engine.putCause("quasar", JSON.stringify(bad), 0, ANN);
    await expect(refused).rejects.toMatchObject({
      code: "invalid_cause",
      detail: { errors: [{ field: "cause" }, { field: "words[0]" }] },
    });
    await expect(engine.deleteCause("quasar", 0, ANN)).rejects.toMatchObject({ code: "cause_not_found" });
  });

  it("R15: RATE_LIMITED, 429 and http_429 with one text are one group", async () => {
    const { engine } = await createScene();
    const matchIds = new Set<string>();
    for (const errorCode of ["RATE_LIMITED", "RATE_LIMIT", "429", "http_429", "TOO_MANY_REQUESTS"])
      matchIds.add((await engine.evaluate({ errorCode, errorMessage: "slow down, please" })).failureMatchId);
    expect(matchIds.size).toBe(1);
    const another = await engine.evaluate({ errorCode: "http_503", errorMessage: "slow down, please" });
    expect(matchIds.has(another.failureMatchId)).toBe(false);
  });
});
