/**
 * The environment of the recovery engine: REC-18's variables, the seed's M10_* as settings of the topic `recovery/evaluate`, and every
 * mistake in them with the others.
 */
import { describe, expect, it } from "vitest";
import { readConfig, shownConfig } from "../../src/server/config.ts";

const read = (env: Record<string, string>) => readConfig({ env, cwd: "/nonexistent" });
const options = async (env: Record<string, string>) => {
  const found = await read(env);
  if (!found.ok) throw new Error(found.faults.join("\n"));
  return found.config.recovery_options;
};

describe("REC-18", () => {
  it("has the seed's defaults", async () => {
    expect(await options({})).toEqual({ ruleDebug: false, evaluatorEnabled: true, autoExecute: false, minConfidence: 0.3 });
  });

  it("reads its variables, in the spellings of the seeds' programs too", async () => {
    const env = {
      RECOVERY_RULE_DEBUG: "True",
      RECOVERY_EVALUATOR_ENABLED: "0",
      RECOVERY_AUTO_EXECUTE: "1",
      RECOVERY_MIN_CONFIDENCE: "0.55",
    };
    expect(await options(env)).toEqual({ ruleDebug: true, evaluatorEnabled: false, autoExecute: true, minConfidence: 0.55 });
  });

  it("is off as a whole with MAKEGOOD_RECOVERY=off, and the start shows it", async () => {
    expect(await options({ MAKEGOOD_RECOVERY: "off" })).toBe(false);
    const found = await read({ MAKEGOOD_RECOVERY: "off" });
    expect(found.ok && shownConfig(found.config).recovery).toBe("off");
  });

  it("reports every mistake together", async () => {
    const found = await read({
      RECOVERY_RULE_DEBUG: "perhaps",
      RECOVERY_AUTO_EXECUTE: "always",
      RECOVERY_MIN_CONFIDENCE: "30%",
      MAKEGOOD_RECOVERY: "maybe",
      M10_MAX_RECLAIM_ATTEMPTS: "many",
      MAKEGOOD_PORT: "x",
    });
    const faults = found.ok ? [] : found.faults;
    for (const name of [
      "RECOVERY_RULE_DEBUG",
      "RECOVERY_AUTO_EXECUTE",
      "RECOVERY_MIN_CONFIDENCE",
      "MAKEGOOD_RECOVERY",
      "M10_MAX",
    ])
      expect(faults.filter((fault) => fault.startsWith(name))).toHaveLength(1);
    expect(faults).toHaveLength(6);
  });

  it.each(["1.1", "-0.1", "NaN", "1e-1", ""])("takes no %j for a confidence", async (text) => {
    const found = await read({ RECOVERY_MIN_CONFIDENCE: text });
    // An empty variable is one that was unset in a hurry.
    expect(found.ok).toBe(text === "");
  });
});

describe("M10_*", () => {
  it("are settings of recovery/evaluate", async () => {
    const env = {
      M10_CLAIM_IDLE_MS: "60000",
      M10_MAX_RECLAIM_ATTEMPTS: "4",
      M10_RECLAIM_BASE_BACKOFF_MS: "2000",
      M10_RECLAIM_MAX_BACKOFF_MS: "90000",
    };
    expect(await options(env)).toMatchObject({
      evaluate: { leaseMs: 60_000, retry: { policy: "recovery-reclaim", attemptsMax: 4, baseMs: 2_000, maxMs: 90_000 } },
    });
    const found = await read(env);
    expect(found.ok && found.config.unused_variables).toEqual([]);
  });

  it("have no effect where the engine is off, and the start says which", async () => {
    const found = await read({ MAKEGOOD_RECOVERY: "off", M10_MAX_RECLAIM_ATTEMPTS: "4", RECOVERY_QUEUE_KEY: "m10:evaluate" });
    expect(found.ok && found.config.unused_variables).toEqual(["M10_MAX_RECLAIM_ATTEMPTS", "RECOVERY_QUEUE_KEY"]);
  });

  it("that are wrong are told once, the stream opened or not", async () => {
    const env = { MAKEGOOD_STREAMS: "recovery", REDIS_URL: "redis://localhost:1", M10_CLAIM_IDLE_MS: "soon" };
    const found = await read(env);
    expect(found.ok ? [] : found.faults.filter((fault) => fault.startsWith("M10_CLAIM_IDLE_MS"))).toHaveLength(1);
  });
});
