/**
 * Rules and actions over HTTP: versions, every mistake at once, patterns that would hang another engine and templates that would run code
 * in another (attacks 22, 24, 25).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dataOf, type Json, type RecoveryServer, startRecoveryServer } from "./recovery-support.ts";

let scene: RecoveryServer;
beforeAll(async () => {
  scene = await startRecoveryServer();
});
afterAll(() => scene.close());

const RULES = "/api/v1/recovery/rules";
const ACTIONS = "/api/v1/recovery/actions";
const GROUP_RULES = "/api/v1/recovery/group-rules";
const rule = (condition: unknown, more: Json = {}): Json => ({
  name: "A rule of a test",
  priority: 95,
  condition,
  action: "notify_ops",
  score: 0.9,
  ...more,
});
const evaluate = async (body: Json) => (await scene.as("alice", "POST", "/api/v1/recovery/evaluate", body)).body;

describe("group rules", () => {
  it("what a split decided is listed, and deleted by its version", async () => {
    const payload = (raw: string) => ({ failure_payload: { error_type: "E1", raw, topic: "rules/split" } });
    const { body } = await scene.as("alice", "POST", "/api/v1/recovery/ingest", payload("cannot write to replica seven"));
    const words = { words: ["replica"], reason: "another host" };
    expect((await scene.as("bob", "POST", `/api/v1/recovery/groups/${body.group_id}/split`, words)).status).toBe(201);
    const listed = dataOf(await scene.as("alice", "GET", GROUP_RULES));
    expect(listed).toMatchObject([
      {
        kind: "split",
        topic: "rules/split",
        error_code: "E1",
        words: ["replica"],
        reason: "another host",
        actor: "bob",
        used: true,
      },
    ]);
    const address = `${GROUP_RULES}/${listed[0]?.id}`;
    expect((await scene.as("alice", "DELETE", address, { version: 9 })).body.code).toBe("version_conflict");
    expect((await scene.as("alice", "DELETE", address, { version: listed[0]?.version })).status).toBe(204);
    expect([(await scene.as("alice", "DELETE", address)).status, dataOf(await scene.as("alice", "GET", GROUP_RULES))]).toEqual([
      404,
      [],
    ]);
  });
});

describe("causes", () => {
  it("a signature is made, tested, edited by version and deleted; a shipped one is switched off", async () => {
    const address = "/api/v1/recovery/causes/flux";
    const mine = { cause: "network", certainty: 0.99, says: "the flux was interrupted", words: ["flux … gone"] };
    const made = await scene.as("alice", "PUT", address, mine);
    expect([made.status, made.body]).toMatchObject([201, { id: "flux", version: 1, ...mine }]);
    const told = await evaluate({ error_code: "http_500", error_message: "the flux is gone" });
    expect(told).toMatchObject({ cause: "network", cause_signature: "flux", recommended_action: "retry_exponential" });
    expect((await scene.as("bob", "PUT", address, mine)).body.code).toBe("version_conflict");
    expect((await scene.as("bob", "PUT", address, { ...mine, cause: "weather", version: 1 })).body.code).toBe("invalid_cause");
    expect((await scene.as("bob", "DELETE", address)).status).toBe(204);
    expect((await scene.as("alice", "GET", address)).body.code).toBe("cause_not_found");
    expect((await scene.as("alice", "DELETE", "/api/v1/recovery/causes/deadlock")).status).toBe(204);
    const listed = dataOf(await scene.as("alice", "GET", "/api/v1/recovery/causes"));
    expect(listed.find(({ id }) => id === "deadlock")).toMatchObject({ enabled: false, version: 2 });
    expect(await evaluate({ error_code: "E1", error_message: "lorem", http_status: 401 })).toMatchObject({
      cause: "auth_or_permission",
    });
  });
});

describe("rules", () => {
  it("the ten that are shipped are there, in their order", async () => {
    const rules = dataOf(await scene.as("alice", "GET", RULES));
    const ids = rules.map(({ id }) => String(id));
    const seeds = ids.filter((id) => !id.startsWith("cause_"));
    expect(seeds.slice(0, 3)).toEqual(["timeout_retry", "rate_limit_backoff", "server_error_fallback"]);
    expect(seeds).toHaveLength(10);
    expect(ids.indexOf("timeout_retry")).toBe(ids.length - 10);
  });

  it("a new one works at once, is edited by version, and its versions stay", async () => {
    const made = await scene.as("alice", "PUT", `${RULES}/mine`, rule({ code: { is: ["VERY_OWN"] } }));
    expect([made.status, made.body]).toMatchObject([201, { id: "mine", enabled: true }]);
    expect(await evaluate({ error_code: "very-own" })).toMatchObject({ recommended_action: "notify_ops", confidence: 0.9 });
    const twice = await scene.as("bob", "PUT", `${RULES}/mine`, rule({ code: { is: ["VERY_OWN"] } }));
    expect([twice.status, twice.body.code]).toEqual([409, "version_conflict"]);
    const edited = await scene.as("bob", "PUT", `${RULES}/mine`, { ...made.body, score: 0.6 });
    expect([edited.status, edited.body.score]).toEqual([200, 0.6]);
    const stale = await scene.as("alice", "PUT", `${RULES}/mine`, { ...made.body, score: 0.1 });
    expect([stale.status, stale.body.code]).toEqual([409, "version_conflict"]);
    expect((await scene.as("alice", "DELETE", `${RULES}/mine`, { version: made.body.version })).status).toBe(409);
    const unmatched = await scene.as("alice", "DELETE", `${RULES}/mine`, undefined, { "if-match": `"${made.body.version}"` });
    expect([unmatched.status, unmatched.body.code]).toEqual([412, "version_conflict"]);
    expect((await scene.as("alice", "DELETE", `${RULES}/mine`)).status).toBe(204);
    expect((await scene.as("alice", "GET", `${RULES}/mine`)).status).toBe(404);
    const history = dataOf(await scene.as("alice", "GET", `${RULES}/mine/history`));
    expect(history.map(({ actor, rule: text }) => [actor, (text as Json | null)?.score ?? null])).toEqual([
      ["alice", null],
      ["bob", 0.6],
      ["alice", 0.9],
    ]);
  });

  it("a shipped one is edited from the version that is shown, and switched off by deleting it", async () => {
    const shown = (await scene.as("alice", "GET", `${RULES}/budget_fallback`)).body;
    const edited = await scene.as("alice", "PUT", `${RULES}/budget_fallback`, { ...shown, score: 0.5 });
    expect([edited.status, edited.body.score]).toEqual([200, 0.5]);
    expect((await scene.as("alice", "DELETE", `${RULES}/escalate_repeated`)).status).toBe(204);
    const told = await evaluate({ error_code: "TIMEOUT", occurrence_count: 7 });
    const matched = (told.rules_evaluated as Json[]).filter((one) => one.matched).map((one) => one.rule_id);
    expect(matched).not.toContain("escalate_repeated");
  });

  it("every mistake is named with its path", async () => {
    const wrong = {
      ...rule({ all: [{ code: { class: ["NO_SUCH"] } }, { pattern: { field: "x", matches: "(" } }] }),
      score: 7,
      action: "x",
    };
    const answer = await scene.as("alice", "PUT", `${RULES}/wrong`, wrong);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_rule"]);
    const fields = (answer.body.errors as { field: string }[]).map(({ field }) => field);
    for (const field of ["score", "action", "condition.all[0].code.class[0]", "condition.all[1].pattern.field"])
      expect(fields).toContain(field);
  });

  it.each<[string, unknown]>([
    ["an id that is not that of the address", { ...rule({ occurrences: 1 }), id: "other" }],
    ["no object", []],
    ["a text", '"rule"'],
    [
      "__proto__ instead of a condition",
      '{"name":"x","priority":1,"action":"notify_ops","score":0.5,"__proto__":{"condition":{"occurrences":1}}}',
    ],
    ["a tree without end", rule(Array.from({ length: 60 }).reduce((tree) => ({ not: tree }), { occurrences: 1 }))],
    ["an id with a path in it", rule({ occurrences: 1 }, { id: "../x" })],
  ])("%s is 400", async (_what, body) => {
    const answer = await scene.as("alice", "PUT", `${RULES}/bad`, body);
    expect([answer.status, (answer.body.code as string).startsWith("invalid_")]).toEqual([400, true]);
    expect(({} as { condition?: unknown }).condition).toBeUndefined();
  });
});

describe("hostile patterns (attack 24)", () => {
  it("^(a+)+$ is matched in linear time, with the rest of the server awake", async () => {
    const made = await scene.as("alice", "PUT", `${RULES}/evil`, rule({ pattern: { field: "message", matches: "^(a+)+$" } }));
    expect(made.status).toBe(201);
    // A pattern that goes back would need longer than any test may take.
    const [told, alive] = await Promise.all([
      evaluate({ error_code: "X", error_message: `${"a".repeat(4_000)}!` }),
      scene.server.api("/livez"),
    ]);
    expect([alive.status, (told.rules_evaluated as Json[]).find((one) => one.rule_id === "evil")?.matched]).toEqual([200, false]);
    await scene.as("alice", "DELETE", `${RULES}/evil`);
  });

  it.each(["(a)\\1", "(?=a)b", "(?<=a)b", "(", "a{1,100000}", "((a{1,30}){1,30}){1,30}", "x".repeat(300), ""])(
    "%s is refused when it is saved",
    async (matches) => {
      const answer = await scene.as("alice", "PUT", `${RULES}/evil`, rule({ pattern: { field: "message", matches } }));
      expect([answer.status, answer.body.code]).toEqual([400, "invalid_rule"]);
    },
  );
});

describe("actions", () => {
  it("are filtered by type (REC-13), and a type that is none is 400", async () => {
    expect(dataOf(await scene.as("alice", "GET", ACTIONS))).toHaveLength(7);
    expect(dataOf(await scene.as("alice", "GET", `${ACTIONS}?action_type=skip`))).toMatchObject([{ action_code: "skip_task" }]);
    expect((await scene.as("alice", "GET", `${ACTIONS}?action_type=nuke`)).status).toBe(400);
  });

  it("texts that no store can keep and numbers that no redrive can have are 400", async () => {
    for (const [action, template] of [
      ["manual_intervention", { owner: "a\0b" }],
      ["skip_task", { reason: "" }],
      ["retry_exponential", { rate_per_second: 0 }],
      ["retry_exponential", { canary: 1e9 }],
    ] as const) {
      const { version } = (await scene.as("alice", "GET", `${ACTIONS}/${action}`)).body;
      const answer = await scene.as("alice", "PUT", `${ACTIONS}/${action}`, { template, version });
      const [[member]] = Object.entries(template) as [[string, unknown]];
      expect([answer.status, answer.body.code]).toEqual([400, "invalid_action"]);
      expect(answer.body.errors).toMatchObject([{ field: `template.${member}` }]);
    }
  });

  it("an edit names its version, and what is absent stays", async () => {
    const before = (await scene.as("alice", "GET", `${ACTIONS}/notify_ops`)).body;
    const edited = await scene.as("alice", "PUT", `${ACTIONS}/notify_ops`, { priority: 55, version: before.version });
    expect([edited.status, edited.body]).toMatchObject([
      200,
      { priority: 55, approval: before.approval, template: before.template },
    ]);
    const stale = await scene.as("bob", "PUT", `${ACTIONS}/notify_ops`, { priority: 1, version: before.version });
    expect([stale.status, stale.body.code]).toEqual([409, "version_conflict"]);
  });

  it("what is risky requires an approval, also where its policy asks for none", async () => {
    const { version, requires_approval } = (await scene.as("alice", "GET", `${ACTIONS}/notify_ops`)).body;
    const risky = (await scene.as("alice", "PUT", `${ACTIONS}/notify_ops`, { risk: "risky", version })).body;
    expect([requires_approval, risky.approval, risky.requires_approval]).toEqual([false, "none", true]);
    await scene.as("alice", "PUT", `${ACTIONS}/notify_ops`, { version: risky.version });
  });

  it.each([
    "{{constructor.constructor('return process')()}}",
    "{constructor}",
    "{__proto__}",
    "$".concat("{process.exit(1)}"),
    "{topic.constructor}",
    "{topic",
  ])("a template %s is refused when it is saved (attack 25)", async (text) => {
    const { version } = (await scene.as("alice", "GET", `${ACTIONS}/notify_ops`)).body;
    const answer = await scene.as("alice", "PUT", `${ACTIONS}/notify_ops`, { template: { text }, version });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_action"]);
  });

  it.each<[Json]>([
    [{ risk: "none" }],
    [{ approval: 2 }],
    [{ priority: -1 }],
    [{ enabled: "yes" }],
    [{ plan: "x" }],
    [{ template: { url: "http://x" } }],
  ])("settings %j are 400", async (settings) => {
    const { version } = (await scene.as("alice", "GET", `${ACTIONS}/notify_ops`)).body;
    const answer = await scene.as("alice", "PUT", `${ACTIONS}/notify_ops`, { ...settings, version });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_action"]);
  });
});
