/**
 * The environment of the recovery engine: REC-18's variables, the seed's M10_* as settings of the topic `recovery/evaluate`, and every
 * mistake in them with the others; what they and the config file mean for a server that runs.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { readConfig, shownConfig } from "../../src/server/config/config.ts";
import { dataOf, startReceiver, startRecoveryServer } from "./recovery-support.ts";
import { configOf } from "./support.ts";

const read = (env: Record<string, string>) => readConfig({ env, cwd: "/nonexistent" });
const options = async (env: Record<string, string>) => {
  const found = await read(env);
  if (!found.ok) throw new Error(found.faults.join("\n"));
  return found.config.recovery_options;
};

describe("REC-18", () => {
  it("has the seed's defaults", async () => {
    const defaults = { ruleDebug: false, evaluatorEnabled: true, autoExecute: false, minConfidence: 0.3, appVersion: null };
    expect(await options({})).toEqual(defaults);
  });

  it("reads its variables, in the spellings of the seeds' programs too", async () => {
    const env = {
      RECOVERY_RULE_DEBUG: "True",
      RECOVERY_EVALUATOR_ENABLED: "0",
      RECOVERY_AUTO_EXECUTE: "1",
      RECOVERY_MIN_CONFIDENCE: "0.55",
      MAKEGOOD_APP_VERSION: "1.4.2",
    };
    const read = { ruleDebug: true, evaluatorEnabled: false, autoExecute: true, minConfidence: 0.55, appVersion: "1.4.2" };
    expect(await options(env)).toEqual(read);
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

  it("allow no takeover, and the topic still has its one attempt", async () => {
    expect(await options({ M10_MAX_RECLAIM_ATTEMPTS: "0" })).toMatchObject({ evaluate: { retry: { attemptsMax: 1 } } });
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

const BASE = "/api/v1/recovery";

describe("RECOVERY_AUTO_EXECUTE", () => {
  it("DR-32: lets ten begin by themselves in an hour; the eleventh waits for a person, who may execute it", async () => {
    const scene = await startRecoveryServer({ RECOVERY_AUTO_EXECUTE: "true" });
    try {
      // Of no message of ours: what is told to the operators is done at once, and nothing else goes on.
      const rule = {
        name: "tell",
        priority: 95,
        enabled: true,
        condition: { code: { is: ["DISK_FULL"] } },
        action: "notify_ops",
        score: 0.9,
      };
      expect((await scene.as("alice", "PUT", `${BASE}/rules/tell_at_once`, rule)).status).toBe(201);
      const failures = Array.from({ length: 11 }, (_, n) => ({
        error_type: "DISK_FULL",
        raw: "no space left",
        topic: `disk/of-${n}`,
      }));
      for (const failure_payload of failures) await scene.as("alice", "POST", `${BASE}/ingest`, { failure_payload });
      const by = async (query: string) => dataOf(await scene.as("alice", "GET", `${BASE}/candidates?limit=50&${query}`));
      const [refused] = await vi.waitFor(
        async () => {
          expect(await by("evaluation_status=evaluated")).toHaveLength(11);
          expect(await by("execution_status=succeeded")).toHaveLength(10);
          const waiting = await by("execution_status=pending");
          const lines = dataOf(await scene.as("alice", "GET", `${BASE}/provenance?candidate_id=${waiting[0]?.candidate_id}`));
          expect(lines[0]).toMatchObject({
            event_type: "auto_execution_refused",
            reason: expect.stringContaining("this hour's limit"),
          });
          return waiting;
        },
        { timeout: 10_000, interval: 50 },
      );
      expect((await by("execution_status=succeeded")).map(({ executed_by }) => executed_by)).toEqual(Array(10).fill("system"));
      const mine = await scene.as("bob", "POST", `${BASE}/candidates/${refused?.candidate_id}/execute`);
      expect([mine.status, mine.body]).toMatchObject([200, { execution_status: "succeeded", executed_by: "bob" }]);
    } finally {
      await scene.close();
    }
  });
});

describe("the config file", () => {
  it("gives a topic its fallback: what is executed goes there, and the original is resolved", async () => {
    const cwd = await mkdtemp(join(tmpdir(), "makegood-fallback-"));
    const [first, other] = [await startReceiver(), await startReceiver()];
    other.status = 200;
    const sink = (url: string) => ({ kind: "http", url });
    const topic = { sink: sink(first.url), fallback: sink(`${other.url}/instead`), retry: { attempts_max: 1 } };
    await writeFile(join(cwd, "makegood.config.json"), JSON.stringify({ poll_ms: 20, topics: { "file/topic": topic } }));
    const scene = await startRecoveryServer({}, { config: await configOf({}, cwd) });
    try {
      const shown = await scene.as("alice", "GET", "/api/v1/topics/file/topic");
      expect(shown.body).toMatchObject({ source: "file", fallback: { url: `${other.url}/instead` } });
      const sent = await scene.as("alice", "POST", "/api/v1/messages", { topic: "file/topic", payload: 1, key: "one" });
      const candidate = await vi.waitFor(
        async () => {
          const [one] = dataOf(await scene.as("alice", "GET", `${BASE}/candidates?evaluation_status=evaluated`));
          return one ?? expect.fail("it is not evaluated yet");
        },
        { timeout: 10_000, interval: 20 },
      );
      const path = `${BASE}/candidates/${candidate.candidate_id}`;
      await scene.as("alice", "PATCH", path, { selected_action: "fallback_model" });
      await scene.as("alice", "POST", `${path}/approve`);
      expect((await scene.as("alice", "POST", `${path}/execute`)).status).toBe(200);
      await vi.waitFor(
        async () => {
          const message = await scene.as("alice", "GET", `/api/v1/messages/${sent.body.id}`);
          expect(message.body).toMatchObject({ status: "dead", resolution: "resolved" });
        },
        { timeout: 10_000, interval: 50 },
      );
      expect([first.requests.length, other.requests]).toEqual([1, ["POST /in/instead"]]);
    } finally {
      await scene.close();
      for (const receiver of [first, other]) receiver.close();
      await rm(cwd, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    }
  });
});
