/**
 * What people may set: rules and actions as documents, read again when one was written, refused whole when they cannot be used. Hostile
 * patterns and templates are refused where they are saved.
 */
import { describe, expect, it } from "vitest";
import type { RecoveryAction } from "../../../src/recovery/actions/action.ts";
import { rendered, TEMPLATE_NAMES, textFault } from "../../../src/recovery/actions/settings.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import type { Group } from "../../../src/recovery/groups/group.ts";
import { ruleToJson } from "../../../src/recovery/rules/parse-rule.ts";
import type { Rule } from "../../../src/recovery/rules/rule.ts";
import { ANN, BO, createScene, times } from "./scene.ts";

const RULE = {
  id: "card_declined",
  name: "A declined card is not retried",
  priority: 95,
  condition: { code: { is: ["CARD_DECLINED"] } },
  action: "skip_task",
  score: 0.9,
};

const about = async ({ engine }: Awaited<ReturnType<typeof createScene>>, code: string) =>
  (await engine.evaluate({ errorCode: code })).evaluation.recommended?.action;

/** Only a field with a dollar in front of it. */
const DOLLAR = ["$", "{code}"].join("");

describe("rules", () => {
  it("EV-47: ten are shipped below those of causes, and a stored one takes effect in every process", async () => {
    const scene = await createScene();
    const ids = (await scene.engine.rules()).map(({ id }) => id);
    expect(ids.filter((id) => !id.startsWith("cause_"))).toHaveLength(10);
    const other = scene.another();
    expect((await other.evaluate({ errorCode: "CARD_DECLINED" })).evaluation.recommended?.action).not.toBe("skip_task");
    const saved = await scene.engine.putRule(RULE.id, JSON.stringify(RULE), 0, ANN);
    expect(saved).toMatchObject({ id: RULE.id, version: 1, enabled: true });
    expect((await other.evaluate({ errorCode: "CARD_DECLINED" })).evaluation.recommended?.action).toBe("skip_task");
    expect((await other.rules())[0]).toMatchObject({ id: RULE.id });
  });

  it("are edited from the version that was seen, and their history stays", async () => {
    const { engine } = await createScene();
    await engine.putRule(RULE.id, JSON.stringify(RULE), 0, ANN);
    const edit = JSON.stringify({ ...RULE, score: 0.5 });
    await expect(engine.putRule(RULE.id, edit, 0, BO)).rejects.toMatchObject({
      code: "version_conflict",
      detail: { version: 1 },
    });
    expect(await engine.putRule(RULE.id, edit, 1, BO)).toMatchObject({ version: 2, score: 0.5 });
    await engine.deleteRule(RULE.id, 2, ANN);
    expect((await engine.rules()).some(({ id }) => id === RULE.id)).toBe(false);
    await expect(engine.deleteRule(RULE.id, 3, ANN)).rejects.toMatchObject({ code: "rule_not_found" });
    expect((await engine.ruleHistory(RULE.id)).map(({ actor, text }) => [actor, text === ""])).toEqual([
      ["ann", true],
      ["bo", false],
      ["ann", false],
    ]);
    expect(await engine.putRule(RULE.id, edit, 0, ANN)).toMatchObject({ id: RULE.id });
  });

  it("a shipped one is edited from version 1, and disabled when it is deleted", async () => {
    const scene = await createScene();
    const first = (await scene.engine.rules()).find(({ id }) => id === "timeout_retry");
    expect(first).toMatchObject({ version: 1 });
    const edited = { ...first, score: 0.4 };
    await expect(scene.engine.putRule("timeout_retry", JSON.stringify(edited), 0, ANN)).rejects.toMatchObject({
      code: "version_conflict",
    });
    expect(await scene.engine.putRule("timeout_retry", JSON.stringify(edited), 1, ANN)).toMatchObject({ version: 2, score: 0.4 });
    expect((await scene.engine.evaluate({ errorCode: "TIMEOUT" })).evaluation.confidence).toBe(0.4);
    await scene.engine.deleteRule("timeout_retry", 2, ANN);
    expect((await scene.engine.rules()).find(({ id }) => id === "timeout_retry")).toMatchObject({ enabled: false, version: 3 });
    expect(await about(scene, "TIMEOUT")).not.toBe("retry_exponential");
  });

  it("attack 22, 24: are refused with every fault at once, and nothing is saved", async () => {
    const { engine } = await createScene();
    const bad = [
      { ...RULE, score: 7, action: "reboot", priority: -1 },
      { ...RULE, id: "another_id" },
      { ...RULE, condition: { pattern: { field: "message", matches: "(a" } } },
      { ...RULE, condition: { pattern: { field: "message", matches: "(x{1,100}){1,100}" } } },
      { ...RULE, condition: { pattern: { field: "message", matches: "^(?=a)b" } } },
      JSON.parse(`{"__proto__":{"polluted":1},"constructor":1}`),
    ];
    for (const rule of bad) {
      const put = engine.putRule(RULE.id, JSON.stringify(rule), 0, ANN);
      await expect(put).rejects.toMatchObject({ code: "invalid_rule", detail: { errors: expect.any(Array) } });
    }
    await expect(engine.putRule(RULE.id, "{", 0, ANN)).rejects.toMatchObject({ code: "invalid_rule" });
    expect(({} as Record<string, unknown>).polluted).toBe(undefined);
    expect((await engine.rules()).some(({ id }) => id === RULE.id)).toBe(false);
    const faults = await engine.putRule(RULE.id, JSON.stringify(bad[0]), 0, ANN).catch((error) => error.detail.errors);
    expect(faults.map(({ field }: { field: string }) => field).sort()).toEqual(["action", "priority", "score"]);
  });

  it("attack 24: a catastrophic pattern is either taken and fast, or refused", async () => {
    const { engine } = await createScene();
    const rule = { ...RULE, condition: { pattern: { field: "message", matches: "^(a+)+$" } } };
    await engine.putRule(RULE.id, JSON.stringify(rule), 0, ANN);
    // One that goes back would need longer than any test may take.
    await engine.evaluate({ errorCode: "E", errorMessage: `${"a".repeat(50_000)}!` });
  });

  it("one that cannot be read, or whose action is gone, is left out and the others go on", async () => {
    const scene = await createScene();
    const { documents } = scene.recovery;
    await documents.put({ kind: "rule", id: "broken", text: "{}", version: 0, actor: "x" });
    const gone = JSON.stringify({ ...RULE, id: "gone", action: "reboot" });
    await documents.put({ kind: "rule", id: "gone", text: gone, version: 0, actor: "x" });
    expect(await about(scene, "TIMEOUT")).toBe("retry_exponential");
    expect(scene.events).toContainEqual(expect.objectContaining({ what: "recovery_rule_unreadable" }));
    expect((await scene.engine.rules()).some(({ id }) => id === "gone")).toBe(true);
  });
});

describe("actions", () => {
  it("REC-3, REC-6: seven are shipped in the order of their priority, by type on request, with what is known of them", async () => {
    const scene = await createScene();
    const all = await scene.engine.actions();
    expect(all.map(({ actionCode, priority }) => [actionCode, priority])).toEqual([
      ["retry_exponential", 80],
      ["fallback_model", 70],
      ["circuit_breaker", 60],
      ["notify_ops", 50],
      ["rollback_state", 40],
      ["manual_intervention", 30],
      ["skip_task", 20],
    ]);
    expect(
      all
        .filter(({ isAutomated, risk, approval }) => isAutomated && risk === "safe" && approval === "none")
        .map(({ actionCode }) => actionCode),
    ).toEqual(["retry_exponential", "notify_ops"]);
    expect(await scene.engine.actions({ actionType: "notify" })).toMatchObject([{ actionCode: "notify_ops" }]);
    const { groupId } = await scene.timeout();
    await scene.recovery.learn([
      ...times(2, { groupId, action: "notify_ops", healed: 1, failed: 0 }),
      { groupId, action: "notify_ops", healed: 0, failed: 1 },
    ]);
    expect(await scene.engine.actions({ actionType: "notify" })).toMatchObject([{ successes: 2, failures: 1 }]);
  });

  it("are written for those who read the tables, once", async () => {
    const scene = await createScene();
    scene.engine.start();
    await scene.clock.advance(10);
    await scene.engine.stop();
    const stored = await scene.recovery.documents.list("action");
    expect(stored.map(({ id }) => id)).toHaveLength(7);
    expect(JSON.parse(stored[0]?.text ?? "")).toMatchObject({
      code: "circuit_breaker",
      risk: "risky",
      enabled: true,
      settings: {},
    });
    const again = scene.another();
    again.start();
    await scene.clock.advance(10);
    await again.stop();
    expect((await scene.recovery.documents.list("action")).every(({ version }) => version === 1)).toBe(true);
  });

  it("are set in every process at once, from the version that was seen", async () => {
    const scene = await createScene();
    const other = scene.another();
    const same = { approval: "two", risk: "risky", priority: 7, template: { text: "look: {code}" } };
    const settings = JSON.stringify({ enabled: false, ...same });
    expect(await scene.engine.putAction("notify_ops", settings, 0, ANN)).toMatchObject({ ...same, isActive: false, version: 1 });
    expect((await other.actions()).find(({ actionCode }) => actionCode === "notify_ops")).toMatchObject({
      isActive: false,
      priority: 7,
    });
    await expect(other.putAction("notify_ops", "{}", 0, ANN)).rejects.toMatchObject({
      code: "version_conflict",
      detail: { version: 1 },
    });
    expect(await other.putAction("notify_ops", "{}", 1, ANN)).toMatchObject({
      isActive: true,
      approval: "none",
      priority: 50,
      version: 2,
    });
    await expect(other.putAction("reboot", "{}", 0, ANN)).rejects.toMatchObject({ code: "action_not_found" });
  });

  it("what is switched off or forbidden is not suggested", async () => {
    const scene = await createScene();
    await scene.engine.putAction("retry_exponential", `{"enabled":false}`, 0, ANN);
    expect(await about(scene, "TIMEOUT")).toBe(undefined);
    await scene.engine.putAction("retry_exponential", `{"risk":"forbidden"}`, 1, ANN);
    expect(await about(scene, "TIMEOUT")).toBe(undefined);
    await scene.engine.putAction("retry_exponential", "{}", 2, ANN);
    expect(await about(scene, "TIMEOUT")).toBe("retry_exponential");
  });

  it("attack 25: a template has fields of the group and nothing that is evaluated", async () => {
    const { engine } = await createScene();
    const hostile = [
      "{{constructor.constructor('return process')()}}",
      "{constructor}",
      DOLLAR,
      "{code",
      "{__proto__}",
      "{code.length}",
      "{}",
    ];
    for (const text of hostile) {
      const put = engine.putAction("notify_ops", JSON.stringify({ template: { text } }), 0, ANN);
      if (text === DOLLAR) await expect(put, text).resolves.toMatchObject({ template: { text } });
      else await expect(put, text).rejects.toMatchObject({ code: "invalid_action" });
    }
    for (const template of [{ other: "x" }, { text: 5 }, { text: "x".repeat(2_001) }, "x", null]) {
      await expect(engine.putAction("notify_ops", JSON.stringify({ template }), 1, ANN)).rejects.toMatchObject({
        code: "invalid_action",
      });
    }
    for (const settings of [`{"approval":"three"}`, `{"enabled":"yes"}`, `{"plan":"x"}`, `[]`, `{"priority":1.5}`]) {
      await expect(engine.putAction("notify_ops", settings, 1, ANN)).rejects.toMatchObject({ code: "invalid_action" });
    }
  });

  it("a template holds what every store can keep, and numbers that a redrive can have", async () => {
    const { engine } = await createScene();
    const refused = async (code: string, template: Record<string, unknown>): Promise<void> => {
      const put = engine.putAction(code, JSON.stringify({ template }), 0, ANN);
      await expect(put, JSON.stringify(template)).rejects.toMatchObject({ code: "invalid_action" });
    };
    for (const owner of ["a\0b", "a\nb", "\ud800", "x".repeat(256), " "]) await refused("manual_intervention", { owner });
    for (const note of ["a\0b", "\udc00x", "x".repeat(2_001)]) await refused("manual_intervention", { note });
    for (const reason of ["", "  ", "\u0007"]) await refused("skip_task", { reason });
    for (const rate_per_second of [0, 5_001, -1]) await refused("retry_exponential", { rate_per_second });
    for (const canary of [1e9, 0.5]) await refused("retry_exponential", { canary });
    await refused("fallback_model", { failure_share_max: 2 });
    await refused("circuit_breaker", { cooldown_ms: 0 });
    const text = JSON.stringify({ template: { owner: "\u{1f600} night shift", note: "x".repeat(2_000) } });
    await expect(engine.putAction("manual_intervention", text, 0, ANN)).resolves.toMatchObject({ version: 1 });
  });

  it("what a template becomes is cut to what it may be, not through a character", () => {
    const group = { template: "\u{1f600}".repeat(400) } as Group;
    const fields = { group, candidate: {} as Candidate };
    expect(rendered({ owner: "{template}" }, "owner", fields)).toBe("\u{1f600}".repeat(127));
  });

  it("what a field contains is not a template itself", () => {
    const at = new Date(0);
    const group = {
      groupId: 1,
      topic: "{code}",
      errorCode: "{topic}",
      template: "a",
      occurrenceCount: 3,
      firstAt: at,
      lastAt: at,
    } as Group;
    const candidate = { candidateId: 2, confidence: 0.5 } as Candidate;
    const text = "{topic} {code} {occurrences} {confidence}";
    expect(rendered({ text }, "text", { group, candidate })).toBe("{code} {topic} 3 0.50");
    expect(TEMPLATE_NAMES.every((name) => textFault("text", `{${name}}`) === null)).toBe(true);
  });
});

describe("rules that are too many together", () => {
  it("because an action is back do not end evaluation: those past the limit are not asked, and say so", async () => {
    const { engine } = await createScene();
    const matches = "a{64}b{64}c{50}";
    const large = { any: Array.from({ length: 4 }, () => ({ pattern: { field: "message", matches } })) };
    const put = (id: string, priority: number, action: string) =>
      engine.putRule(id, JSON.stringify({ ...RULE, id, priority, action, condition: large }), 0, ANN);
    for (const id of ["one", "two"]) await put(id, 10, "skip_task");
    await expect(put("three", 9, "notify_ops")).rejects.toMatchObject({
      code: "invalid_rule",
      message: expect.stringContaining("2000 steps"),
    });
    const { version } = await engine.putAction("skip_task", `{"enabled":false}`, 0, ANN);
    await put("three", 9, "notify_ops");
    await engine.putAction("skip_task", "{}", version, ANN);
    const { recommended, rulesEvaluated } = (await engine.evaluate({ errorCode: "TIMEOUT" })).evaluation;
    expect(recommended?.action).toBe("retry_exponential");
    const skipped = rulesEvaluated
      .filter(({ ruleId }) => ["one", "two", "three"].includes(ruleId))
      .map(({ ruleId, skipped }) => [ruleId, skipped]);
    expect(skipped).toEqual([
      ["one", undefined],
      ["two", undefined],
      ["three", expect.stringContaining("2000 steps")],
    ]);
  });
});

describe("an action of a program", () => {
  const own: RecoveryAction = {
    actionCode: "call_vendor",
    name: "Call the vendor",
    actionType: "escalate",
    priority: 90,
    risk: "safe",
    approval: "none",
    isAutomated: false,
    appliesToErrorCodes: [],
    appliesToTopics: [],
    template: {},
    inverse: null,
    plan: () => ({}),
  };

  it("that was put together wrongly is refused when it is registered, not when a failure comes", async () => {
    const { engine } = await createScene();
    const wrong = { ...own, appliesToErrorCodes: undefined, appliesToTopics: [7], plan: null } as unknown as RecoveryAction;
    expect(() => engine.register(wrong)).toThrow(/appliesToErrorCodes.*appliesToTopics.*plan must be a function/);
  });

  it("whose refusal throws is suggested with that reason, and keeps no failure from being evaluated", async () => {
    const scene = await createScene();
    const refusal = () => {
      throw new Error("no vendor today");
    };
    scene.engine.register({ ...own, refusal });
    const { groupId } = await scene.timeout();
    await scene.recovery.learn(times(50, { groupId, action: "call_vendor", healed: 1, failed: 0 }));
    const { selectedAction, evaluationStatus, evaluation } = await scene.engine.suggest(groupId, ANN);
    expect([selectedAction, evaluationStatus]).toEqual(["call_vendor", "evaluated"]);
    expect(JSON.parse(evaluation ?? "").notes).toEqual(["call_vendor cannot be done now: no vendor today"]);
  });
});

describe("the record", () => {
  it("has a line for each edit of a rule, an action or a message", async () => {
    const scene = await createScene();
    const { engine } = scene;
    const rule = (await engine.rules()).find(({ id }) => id === "timeout_retry") as Rule;
    const text = JSON.stringify(ruleToJson({ ...rule, score: 0.5 }));
    const { version } = await engine.putRule(rule.id, text, rule.version, ANN);
    await engine.deleteRule(rule.id, version, ANN);
    await engine.putAction("notify_ops", `{"priority":7}`, 0, ANN);
    const [id = ""] = await scene.die(["no answer within 1 ms"]);
    const { groupId } = await scene.candidate();
    const made = await engine.edit(id, { ...ANN, payload: `{"n":2}`, reason: "the amount was wrong" });
    const { data } = await engine.provenance({}, { limit: 20 });
    const lines = data.filter(({ actor }) => actor === "ann");
    expect(lines).toMatchObject([
      { eventType: "message_edited", groupId, reason: "the amount was wrong" },
      { eventType: "action_edited", action: "notify_ops" },
      { eventType: "rule_deleted", ruleId: rule.id },
      { eventType: "rule_edited", ruleId: rule.id },
    ]);
    expect(JSON.parse(lines[0]?.details ?? "")).toEqual({ message: id, edited_as: made.id });
  });
});
