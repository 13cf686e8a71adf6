/**
 * From a dead letter to a healed group over HTTP, and everything that may not happen on the way: forbidden moves, stale versions, one
 * person approving for two, ids that lead nowhere.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createRecords } from "../../src/recovery/records.ts";
import type { WithHome } from "../../src/store/home.ts";
import type { Store } from "../../src/store/store.ts";
import { dataOf, inOrder, type Json, type RecoveryServer, startRecoveryServer } from "./recovery-support.ts";

let scene: RecoveryServer;
beforeAll(async () => {
  scene = await startRecoveryServer();
});
afterAll(() => scene.close());

const BASE = "/api/v1/recovery";
const path = (candidate: Json): string => `${BASE}/candidates/${candidate.candidate_id}`;
const codeOf = ({ status, body }: { status: number; body: Json }) => [status, body.code];

describe("from a dead letter to a healed group", () => {
  it("shows the group with its reasons, runs the chosen action once, and learns what became of it", async () => {
    const { group, candidate, ids } = await scene.deadGroup("heal/whole", 6);
    expect(group).toMatchObject({ topic: "heal/whole", merged_into: null, held_by: null });
    const shown = (await scene.as("alice", "GET", `${BASE}/groups/${group.group_id}`)).body;
    expect(shown.why).toEqual(expect.arrayContaining([expect.any(String)]));
    expect(shown.occurrences).toHaveLength(6);

    const chosen = await scene.as("alice", "PATCH", path(candidate), { selected_action: "retry_exponential", owner: "billing" });
    expect([chosen.status, chosen.body]).toMatchObject([
      200,
      { selected_action: "retry_exponential", owner: "billing", occurrence_count: 6, blast_radius: { messages: 6 } },
    ]);
    expect(typeof chosen.body.candidate_id).toBe("number");
    expect(chosen.headers.get("etag")).toBe(`"${chosen.body.version}"`);

    scene.receiver.status = 200;
    const run = await scene.as("bob", "POST", `${path(candidate)}/execute`, {
      reason: "the receiver is mended",
      version: chosen.body.version,
      redrive: { canary: 2, rate_per_second: 1_000, ramp_from: 1_000, confirm: 6 },
    });
    expect([run.status, run.body]).toMatchObject([200, { executed_by: "bob", redrive_id: expect.any(String) }]);
    await vi.waitFor(
      async () => expect(await scene.candidate(candidate.candidate_id)).toMatchObject({ execution_status: "succeeded" }),
      { timeout: 10_000, interval: 50 },
    );
    for (const id of ids) {
      expect((await scene.as("alice", "GET", `/api/v1/messages/${id}`)).body).toMatchObject({
        status: "delivered",
        generation: 1,
      });
    }
    const redrive = (await scene.as("alice", "GET", `/api/v1/redrives/${run.body.redrive_id}`)).body;
    expect(redrive).toMatchObject({ status: "done", progress: 1, counts: { selected: 6, healed: 6, failed: 0 } });
    expect(redrive.plan).toMatchObject({ canary: 2, rate_per_second: 1_000 });
    const items = dataOf(await scene.as("alice", "GET", `/api/v1/redrives/${run.body.redrive_id}/items?state=healed&limit=4`));
    expect(items).toHaveLength(4);
    expect(dataOf(await scene.as("alice", "GET", "/api/v1/redrives?status=done")).map((one) => one.redrive_id)).toContain(
      run.body.redrive_id,
    );

    const detail = (await scene.as("alice", "GET", `${path(candidate)}?include_provenance=true`)).body;
    const events = (detail.provenance as Json[]).map(({ event_type, actor, actor_type }) => [event_type, actor, actor_type]);
    expect(events).toContainEqual(["executing", "bob", "human"]);
    const whole = dataOf(await scene.as("alice", "GET", `${BASE}/provenance?group_id=${group.group_id}`));
    expect(whole.length).toBeGreaterThanOrEqual((detail.provenance as Json[]).length);
    // R1: a person ran it, and what the receiver refuses does not heal by itself: this is no success of the retry alone.
    const retry = dataOf(await scene.as("alice", "GET", `${BASE}/actions?action_type=retry`));
    expect(retry).toMatchObject([{ action_code: "retry_exponential", successes: 0, success_rate: null }]);
    const { error_code, failure_match_id } = group;
    const alike = await scene.as("alice", "POST", `${BASE}/suggest`, { error_code, failure_match_id, topic: "heal/whole" });
    expect(alike.body).toMatchObject({
      group_id: group.group_id,
      notes: [expect.stringContaining("retry_exponential after a repair healed 6 of 6 messages in 1 execution")],
    });
    const again = await scene.as("alice", "POST", `${path(candidate)}/execute`);
    expect(codeOf(again)).toEqual([409, "wrong_state"]);
  });

  it("DR-3: shows a confidence as it is in every answer, not rounded up to a gate, and what was learned to three places", async () => {
    const { group, candidate } = await scene.deadGroup("heal/digits", 1);
    const learned = { groupId: group.group_id as number, action: "retry_exponential", healed: 5, failed: 2 };
    await createRecords((scene.server.store as Store & WithHome).home).learn([learned]);
    const suggested = async (score: number): Promise<Json> => {
      const condition = { topic: ["heal/digits"] };
      const { version } = (await scene.as("alice", "GET", `${BASE}/rules/digits`)).body;
      const rule = { name: "x", priority: 99, condition, action: "retry_exponential", score, version };
      expect((await scene.as("alice", "PUT", `${BASE}/rules/digits`, rule)).status).toBeLessThan(300);
      return (await scene.as("alice", "POST", `${BASE}/groups/${group.group_id}/suggest`)).body;
    };
    // Beside one execution a score, which is worth three, moves the confidence by three quarters of itself.
    const first = (await suggested(0.75)).confidence as number;
    const shown = await suggested(0.75 + (0.7998 - first) / 0.75);
    // 0.8 to three places, and not enough to run by itself.
    expect(shown.confidence).toBeGreaterThan(0.7996);
    expect(shown.confidence).toBeLessThan(0.8);
    const listed = dataOf(await scene.as("alice", "GET", `${BASE}/candidates?group_id=${group.group_id}`));
    const lines = dataOf(await scene.as("alice", "GET", `${BASE}/provenance?candidate_id=${candidate.candidate_id}`));
    const { confidence, recommended } = shown.evaluation as { confidence: number; recommended: Json };
    const all = [listed[0]?.confidence, lines[0]?.confidence_after, confidence, recommended.confidence];
    expect(all).toEqual(Array(4).fill(shown.confidence));
    const retry = (await scene.as("alice", "GET", `${BASE}/actions/retry_exponential`)).body;
    for (const number of [retry.successes, retry.failures, retry.success_rate])
      expect(String(number)).toMatch(/^\d+(\.\d{1,3})?$/);
  });

  it("of eight who press execute at once exactly one runs it", async () => {
    const { candidate } = await scene.deadGroup("heal/eight", 3);
    await scene.as("alice", "PATCH", path(candidate), { selected_action: "retry_exponential" });
    scene.receiver.status = 200;
    const runs = await Promise.all(
      Array.from({ length: 8 }, (_, n) => scene.as(n % 2 === 0 ? "alice" : "bob", "POST", `${path(candidate)}/execute`)),
    );
    expect(runs.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 409, 409, 409, 409, 409, 409, 409]);
    const redrives = dataOf(await scene.as("alice", "GET", "/api/v1/redrives"));
    expect(redrives.filter(({ candidate_id }) => candidate_id === candidate.candidate_id)).toHaveLength(1);
  });
});

describe("decisions", () => {
  it("two people are two token names: one person twice is one", async () => {
    const { candidate } = await scene.deadGroup("two/people", 2);
    const action = (await scene.as("alice", "GET", `${BASE}/actions/skip_task`)).body;
    const two = await scene.as("alice", "PUT", `${BASE}/actions/skip_task`, { approval: "two", version: action.version });
    expect([two.status, two.body]).toMatchObject([200, { approval: "two", requires_approval: true }]);
    await scene.as("alice", "PATCH", path(candidate), { selected_action: "skip_task" });

    const early = await scene.as("alice", "POST", `${path(candidate)}/execute`);
    expect(codeOf(early)).toEqual([409, "approval_needed"]);
    expect(early.body.detail, "each person has a name here").not.toContain("MAKEGOOD_TOKENS");
    for (let press = 0; press < 2; press++) {
      const mine = await scene.as("alice", "POST", `${path(candidate)}/approve`, { reason: "fine with me" });
      expect(mine.body).toMatchObject({ decision: "pending", approvals_missing: 1, approvals: [{ actor: "alice" }] });
    }
    expect(codeOf(await scene.as("alice", "POST", `${path(candidate)}/execute`))).toEqual([409, "approval_needed"]);
    const agent = await scene.as("bob", "POST", `${path(candidate)}/approve`, {}, { "x-actor-type": "agent" });
    expect(codeOf(agent)).toEqual([409, "approval_needed"]);
    const both = await scene.as("bob", "POST", `${path(candidate)}/approve`);
    expect(both.body).toMatchObject({ decision: "approved", approvals_missing: 0 });
    expect((await scene.as("alice", "POST", `${path(candidate)}/execute`)).status).toBe(200);
  });

  it("two people approving at the same moment are both kept", async () => {
    const { candidate } = await scene.deadGroup("two/moment", 1);
    await scene.as("alice", "PATCH", path(candidate), { selected_action: "skip_task" });
    const answers = await Promise.all(
      (["alice", "bob"] as const).map((who) => scene.as(who, "POST", `${path(candidate)}/approve`)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const now = await scene.candidate(candidate.candidate_id);
    expect(now.decision).toBe("approved");
    expect((now.approvals as Json[]).map(({ actor }) => actor).sort(inOrder)).toEqual(["alice", "bob"]);
  });

  it("an approval lapses when its group changed since", async () => {
    const { group, candidate } = await scene.deadGroup("lapse/one", 2);
    const other = await scene.deadGroup("lapse/two", 1);
    await scene.as("alice", "PATCH", path(candidate), { selected_action: "circuit_breaker" });
    expect((await scene.as("alice", "POST", `${path(candidate)}/approve`)).body.decision).toBe("approved");
    const merge = { from: [other.group.group_id], reason: "one receiver" };
    const merged = await scene.as("bob", "POST", `${BASE}/groups/${group.group_id}/merge`, merge);
    expect([merged.status, merged.body.occurrence_count]).toEqual([200, 3]);
    expect(await scene.candidate(candidate.candidate_id)).toMatchObject({ lapsed: true });
    expect(codeOf(await scene.as("alice", "POST", `${path(candidate)}/execute`))).toEqual([409, "approval_needed"]);
    expect((await scene.as("alice", "GET", `${BASE}/groups/${other.group.group_id}`)).body.merged_into).toBe(group.group_id);
  });

  it("EV-48: DELETE rejects and keeps the record; the alias approves and rejects by id", async () => {
    const { candidate } = await scene.deadGroup("decide/delete", 1);
    const deleted = await scene.as("bob", "DELETE", path(candidate), { reason: "not worth it" });
    expect([deleted.status, deleted.body.decision]).toEqual([200, "rejected"]);
    expect((await scene.as("alice", "GET", path(candidate))).body.decision).toBe("rejected");
    expect(codeOf(await scene.as("alice", "POST", `${path(candidate)}/approve`))).toEqual([409, "wrong_state"]);
    const fresh = await scene.as("alice", "POST", `${BASE}/groups/${candidate.group_id}/suggest`);
    expect([fresh.status, fresh.body]).toMatchObject([200, { round: 2, decision: "pending" }]);
    const rounds = async (query: string) =>
      dataOf(await scene.as("alice", "GET", `${BASE}/candidates?group_id=${candidate.group_id}${query}`)).map(
        ({ round }) => round,
      );
    expect([await rounds(""), await rounds("&all=true")]).toEqual([[2], [2, 1]]);
    const alias = { candidate_id: fresh.body.candidate_id, decision: "rejected" };
    expect((await scene.as("alice", "POST", `${BASE}/approve`, alias)).body.decision).toBe("rejected");
  });
});

describe("DR-33: PATCH", () => {
  it.each(["executing", "succeeded", "failed", "rolled_back", "unknown", "pending"])(
    "DR-33: cannot write %s over a pending execution",
    async (execution_status) => {
      const { body } = await scene.as("alice", "POST", `${BASE}/ingest`, {
        failure_payload: { error_type: "TIMEOUT", raw: "x", topic: `patch/${execution_status}` },
      });
      const patched = await scene.as("alice", "PATCH", `${BASE}/candidates/${body.candidate_id}`, { execution_status });
      expect(codeOf(patched)).toEqual([409, "wrong_state"]);
      expect(await scene.candidate(body.candidate_id)).toMatchObject({ execution_status: "pending" });
    },
  );

  it("DR-33: skipped is the end: nothing follows it", async () => {
    const { candidate } = await scene.deadGroup("patch/skip", 1);
    expect((await scene.as("alice", "PATCH", path(candidate), { execution_status: "skipped" })).status).toBe(200);
    for (const execution_status of ["pending", "executing", "succeeded"]) {
      expect(codeOf(await scene.as("alice", "PATCH", path(candidate), { execution_status }))).toEqual([409, "wrong_state"]);
    }
    expect((await scene.as("alice", "POST", `${path(candidate)}/execute`)).status).toBe(409);
  });

  it("refuses a version that has moved on: 409 for the member, 412 for If-Match", async () => {
    const { candidate } = await scene.deadGroup("patch/version", 1);
    const note = { note: "look at this" };
    const first = await scene.as("alice", "PATCH", path(candidate), { ...note, version: candidate.version });
    expect(first.status).toBe(200);
    expect(codeOf(await scene.as("bob", "PATCH", path(candidate), { ...note, version: candidate.version }))).toEqual([
      409,
      "version_conflict",
    ]);
    const stale = await scene.as("bob", "PATCH", path(candidate), note, { "if-match": `"${candidate.version}"` });
    expect([stale.status, stale.body]).toMatchObject([412, { status: 412, code: "version_conflict" }]);
    const now = String(first.headers.get("etag"));
    expect(
      (await scene.as("bob", "PATCH", path(candidate), { owner: null, note: null }, { "if-match": now })).body,
    ).toMatchObject({
      note: null,
    });
    expect((await scene.as("bob", "PATCH", path(candidate), note, { "if-match": "newest" })).status).toBe(400);
    const torn = await scene.as("bob", "PATCH", path(candidate), { ...note, version: 1 }, { "if-match": '"2"' });
    expect([torn.status, torn.body.code], "two versions at once").toEqual([400, "invalid_request"]);
  });

  it.each<[string, unknown]>([
    ["nothing to change", {}],
    ["a status that is none", { execution_status: "done" }],
    ["an unknown field", { note: "x", decision: "approved" }],
    ["wrong types", { owner: 7, note: [], version: "1" }],
    ["__proto__", '{"note":"x","__proto__":{"decision":"approved"}}'],
    ["no object", "[]"],
  ])("%s is 400", async (_what, body) => {
    const { body: made } = await scene.as("alice", "POST", `${BASE}/ingest`, {
      failure_payload: { error_type: "TIMEOUT", raw: "x", topic: "patch/bad" },
    });
    const patched = await scene.as("alice", "PATCH", `${BASE}/candidates/${made.candidate_id}`, body);
    expect(codeOf(patched)).toEqual([400, "invalid_request"]);
  });

  it("DR-31: an action that no catalogue knows is refused", async () => {
    const { candidate } = await scene.deadGroup("patch/action", 1);
    const patched = await scene.as("alice", "PATCH", path(candidate), { selected_action: "rm_rf" });
    expect(patched.status).toBeGreaterThanOrEqual(400);
    expect(patched.status).toBeLessThan(500);
    expect(patched.body.code).toBe("action_not_found");
  });
});

describe("ids that lead nowhere", () => {
  it.each<[string, string, unknown?]>([
    ["GET", "groups/999999"],
    ["GET", "groups/0"],
    ["GET", "groups/-1"],
    ["GET", "groups/1e3"],
    ["GET", "groups/999999999999999999999"],
    ["GET", "groups/999999/occurrences"],
    ["POST", "groups/999999/merge", { from: [999998], reason: "x" }],
    ["POST", "groups/999999/split", { words: ["x"], reason: "x" }],
    ["POST", "groups/999999/suggest"],
    ["GET", "candidates/999999"],
    ["GET", "candidates/x"],
    ["PATCH", "candidates/999999", { note: "x" }],
    ["DELETE", "candidates/999999"],
    ["POST", "candidates/999999/approve"],
    ["POST", "candidates/999999/reject"],
    ["POST", "candidates/999999/execute"],
    ["GET", "rules/no_such_rule"],
    ["DELETE", "rules/no_such_rule"],
    ["GET", "actions/no_such_action"],
    ["PUT", "actions/no_such_action", { enabled: true }],
  ])("%s %s is 404", async (method, where, body) => {
    const answer = await scene.as("alice", method, `${BASE}/${where}`, body);
    expect([answer.status, answer.body.code]).toEqual([404, expect.stringMatching(/^(group|candidate|rule|action)_not_found$/)]);
  });

  it.each([
    "groups?limit=0",
    "groups?nonsense=1",
    "groups/1/occurrences?limit=1001",
    "groups/1/occurrences?payload=true&limit=21",
    "candidates?decision=perhaps",
    "candidates?group_id=x",
    "provenance?redrive_id=x",
  ])("GET %s is 400 invalid_query", async (where) => {
    expect(codeOf(await scene.as("alice", "GET", `${BASE}/${where}`))).toEqual([400, "invalid_query"]);
  });

  it("a cursor that nobody gave out is 400", async () => {
    for (const where of [`${BASE}/groups`, `${BASE}/candidates`, `${BASE}/provenance`, "/api/v1/redrives"]) {
      expect((await scene.as("alice", "GET", `${where}?cursor=made-up`)).status).toBe(400);
    }
  });
});
