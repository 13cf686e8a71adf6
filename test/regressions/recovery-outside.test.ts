/**
 * Failures that other services reported do not end in a dead end: they are sent again through a topic of ours, or carried out by who
 * reported them; what became of it is learned (R5). A match id that was supplied can be asked for (R6). And a group that is resolved in a
 * version comes back with that version.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Home, homeOf } from "../../src/store/home.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { terminal } from "../cli/terminal.ts";
import { dataOf, inOrder, type Json, type RecoveryServer, startRecoveryServer, TOKENS } from "../server/recovery-support.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";

const BASE = "/api/v1/recovery";
const WAIT = { timeout: 20_000, interval: 50 };

const schema = freshSchema();
let scene: RecoveryServer;
beforeAll(async () => {
  scene = await startRecoveryServer({}, { store: createPostgresStore({ url: databaseUrl(), schema }) });
});
afterAll(async () => {
  await scene.close();
  await dropSchema(schema);
});

const ask = (method: string, path: string, body?: unknown) => scene.as("alice", method, `${BASE}${path}`, body);
const codeOf = ({ status, body }: { status: number; body: Json }) => [status, body.code];
const groupOf = async (id: unknown) => (await ask("GET", `/groups/${id}`)).body;

async function report(code: string, key: string, more: Json = {}): Promise<Json> {
  const failure_payload = { error_type: code, raw: `the ledger of ${code} refused the entry`, key };
  const answer = await ask("POST", "/ingest", { failure_payload, idempotency_key: key, ...more });
  expect(answer.status).toBeLessThan(202);
  return answer.body;
}

/** Reports failures and returns their candidate with this action chosen. */
async function reported(code: string, count: number, more: Json = {}, action = "retry_exponential"): Promise<Json> {
  let answer: Json = {};
  for (let n = 0; n < count; n++) answer = await report(code, `${code}-${n}`, more);
  const path = `/candidates/${answer.candidate_id}`;
  await vi.waitFor(async () => expect((await ask("GET", path)).body.evaluation_status).toBe("evaluated"), WAIT);
  const chosen = await ask("PATCH", path, { selected_action: action });
  expect(chosen.status).toBe(200);
  return chosen.body;
}

const ended = (id: unknown, status: string) =>
  vi.waitFor(async () => {
    const candidate = await scene.candidate(id);
    expect(candidate).toMatchObject({ execution_status: status });
    return candidate;
  }, WAIT);

/** What is known of an action in this group. */
const learned = async (id: unknown) => (await scene.candidate(id)).action as Json;

describe("R5: sent again through a topic that the reporter named", () => {
  const topic = async (name: string) => {
    const definition = { sink: { kind: "http", url: scene.receiver.url }, retry: { attempts_max: 1 } };
    expect((await scene.as("alice", "PUT", `/api/v1/topics/${name}`, definition)).status).toBeLessThan(202);
  };
  const messagesOf = async (name: string) => dataOf(await scene.as("alice", "GET", `/api/v1/messages?topic=${name}&limit=100`));

  it("R5: sends each open failure once, under its key, and what becomes of the messages is the outcome", async () => {
    await topic("outside/again");
    scene.receiver.status = 200;
    const { candidate_id: id, group_id } = await reported("E_AGAIN", 8, { redrive_topic: "outside/again" });
    expect(await groupOf(group_id)).toMatchObject({ topic: "outside", open_messages: 0, open_reports: 8 });
    const run = await ask("POST", `/candidates/${id}/execute`, { reason: "the ledger is back" });
    expect([run.status, run.body.execution_status]).toEqual([200, "executing"]);
    const done = await ended(id, "succeeded");
    expect(done.execution_result).toMatchObject({ counts: { waiting: 0, sent: 0, healed: 8, failed: 0 } });
    const messages = await messagesOf("outside/again");
    expect(new Set(messages.map(({ key }) => key))).toEqual(new Set(Array.from({ length: 8 }, (_, n) => `failure:E_AGAIN-${n}`)));
    expect(messages).toHaveLength(8);
    expect(await groupOf(group_id)).toMatchObject({ open_reports: 0, regression: false });
    const [one] = dataOf(await ask("GET", `/groups/${group_id}/occurrences?limit=1`));
    expect(one).toMatchObject({ open: null, open_report: false, redrive_topic: "outside/again", sent_id: expect.any(String) });
    expect(await learned(id)).toMatchObject({ failures: 0 });
    expect(Number((await learned(id)).successes)).toBeGreaterThan(0);
  });

  it("R5: stops after a canary that failed, and leaves the rest open for the next suggestion", async () => {
    await topic("outside/down");
    scene.receiver.status = 422;
    const { candidate_id: id, group_id } = await reported("E_DOWN", 9, { redrive_topic: "outside/down" });
    expect((await ask("POST", `/candidates/${id}/execute`, { redrive: { canary: 3 } })).status).toBe(200);
    const done = await ended(id, "failed");
    expect(done.execution_result).toMatchObject({
      counts: { waiting: 6, healed: 0, failed: 3 },
      reason: expect.stringContaining("3 of the first 3"),
    });
    expect(await messagesOf("outside/down")).toHaveLength(3);
    expect(await groupOf(group_id)).toMatchObject({ open_reports: 6 });
    expect(dataOf(await ask("GET", "/groups?reported=true")).map((group) => group.group_id)).toContain(group_id);
  });

  it("R5: refuses a topic that is not there with what to do, and the engine's own topics at once", async () => {
    const { candidate_id: id } = await reported("E_NOWHERE", 1, { redrive_topic: "outside/nowhere" });
    const refused = await ask("POST", `/candidates/${id}/execute`);
    expect(codeOf(refused)).toEqual([409, "action_refused"]);
    expect(refused.body.detail).toContain("outside/nowhere");
    const own = { failure_payload: { error_type: "X" }, redrive_topic: "recovery/evaluate" };
    expect(codeOf(await ask("POST", "/ingest", own))).toEqual([400, "invalid_request"]);
  });
});

describe("R5: carried out by who reported it", () => {
  it("R5: execute says how, a claim fences it, and the reported outcome ends, closes and teaches", async () => {
    const { candidate_id: id, group_id } = await reported("E_CLAIM", 4);
    const refused = await ask("POST", `/candidates/${id}/execute`);
    expect(codeOf(refused)).toEqual([409, "action_refused"]);
    expect(refused.body.detail).toContain("claim the candidate");

    const claimed = await ask("POST", `/candidates/${id}/claim`, { lease_ms: 60_000 });
    expect([claimed.status, claimed.body]).toMatchObject([
      200,
      { execution_status: "executing", executed_by: "alice", lease_until: expect.any(String) },
    ]);
    const { execution_id } = claimed.body;
    expect(codeOf(await ask("POST", `/candidates/${id}/claim`))).toEqual([409, "wrong_state"]);
    const longer = await ask("POST", `/candidates/${id}/claim`, { execution_id, lease_ms: 3_600_000 });
    expect(Date.parse(longer.body.lease_until as string)).toBeGreaterThan(Date.parse(claimed.body.lease_until as string));

    const outcome = { healed: 3, failed: 1, note: "one has no account" };
    const stranger = await ask("POST", `/candidates/${id}/outcome`, {
      execution_id: "0193d6a0-0000-7000-8000-000000000000",
      ...outcome,
    });
    expect(codeOf(stranger)).toEqual([409, "wrong_state"]);
    expect(codeOf(await ask("POST", `/candidates/${id}/outcome`, { execution_id, healed: 5, failed: 0 }))).toEqual([
      400,
      "invalid_request",
    ]);
    const told = await ask("POST", `/candidates/${id}/outcome`, { execution_id, ...outcome });
    expect([told.status, told.body]).toMatchObject([
      200,
      { execution_status: "succeeded", execution_result: outcome, lease_until: null },
    ]);
    // The first answer was lost: the same once more is the same; another one is too late.
    expect((await ask("POST", `/candidates/${id}/outcome`, { execution_id, ...outcome })).status).toBe(200);
    expect(codeOf(await ask("POST", `/candidates/${id}/outcome`, { execution_id, healed: 4, failed: 0 }))).toEqual([
      409,
      "wrong_state",
    ]);
    expect(await groupOf(group_id)).toMatchObject({ open_reports: 0 });
    const { successes, failures } = await learned(id);
    expect([Number(successes) > 0, Number(failures) > 0]).toEqual([true, true]);
    const lines = dataOf(await ask("GET", `/provenance?candidate_id=${id}`)).map(({ event_type }) => event_type);
    expect(lines.slice(0, 2)).toEqual(["executed", "executing"]);
  });

  it("R5: needs the approval that its action needs, and nothing of ours to be open", async () => {
    const { candidate_id: id } = await reported("E_RISKY", 1, {}, "fallback_model");
    expect(codeOf(await ask("POST", `/candidates/${id}/claim`))).toEqual([409, "approval_needed"]);
    expect((await ask("POST", `/candidates/${id}/approve`)).status).toBe(200);
    expect((await ask("POST", `/candidates/${id}/claim`)).body).toMatchObject({ execution_status: "executing" });
    const ours = await scene.deadGroup("outside/ours", 2);
    await ask("PATCH", `/candidates/${ours.candidate.candidate_id}`, { selected_action: "retry_exponential" });
    const refused = await ask("POST", `/candidates/${ours.candidate.candidate_id}/claim`);
    expect([codeOf(refused), refused.body.detail]).toEqual([[409, "action_refused"], expect.stringContaining("execute it here")]);
  });

  it("R5: a lease that ran out makes it unknown; a late report is refused, and a person ends it", async () => {
    const { candidate_id: id, group_id } = await reported("E_LATE", 2);
    const { execution_id } = (await ask("POST", `/candidates/${id}/claim`, { lease_ms: 1_000 })).body;
    await ended(id, "unknown");
    const late = await ask("POST", `/candidates/${id}/outcome`, { execution_id, healed: 2, failed: 0 });
    expect(codeOf(late)).toEqual([409, "wrong_state"]);
    expect(late.body.detail).toContain("too late");
    expect(await groupOf(group_id)).toMatchObject({ open_reports: 2 });
    expect(
      (await ask("PATCH", `/candidates/${id}`, { execution_status: "succeeded", reason: "seen in the ledger" })).status,
    ).toBe(200);
    expect(await groupOf(group_id)).toMatchObject({ open_reports: 0 });
  });

  it("R5: what fails after the claim stays open and gets a suggestion of its own", async () => {
    const { candidate_id: id, group_id } = await reported("E_MORE", 2);
    const { execution_id } = (await ask("POST", `/candidates/${id}/claim`)).body;
    await report("E_MORE", "E_MORE-after");
    await ask("POST", `/candidates/${id}/outcome`, { execution_id, healed: 2, failed: 0 });
    const group = await groupOf(group_id);
    expect(group).toMatchObject({ open_reports: 1, candidate: { round: 2, execution_status: "pending" } });
    const open = dataOf(await ask("GET", `/groups/${group_id}/occurrences`)).filter((one) => one.open_report);
    expect(open.map(({ idempotency_key }) => idempotency_key)).toEqual(["E_MORE-after"]);
  });

  it("R5: skipping closes what was reported", async () => {
    const { candidate_id: id, group_id } = await reported("E_SKIP", 3, {}, "skip_task");
    await ask("POST", `/candidates/${id}/approve`);
    expect((await ask("POST", `/candidates/${id}/execute`)).body).toMatchObject({ execution_status: "succeeded" });
    expect(await groupOf(group_id)).toMatchObject({ open_reports: 0 });
  });
});

describe("R6: a match id that was supplied", () => {
  it("R6: can be asked for everywhere, and has a row in the seed's view", async () => {
    const mine = "6F0B2C1E-9f6d-4c53-8a55-0d1f3c6b7a90";
    const { group_id, candidate_id } = await report("E_MATCH", "match-1", { failure_match_id: mine });
    const own = (await groupOf(group_id)).failure_match_id;
    expect(own).not.toBe(mine.toLowerCase());
    for (const id of [mine, own]) {
      expect(dataOf(await ask("GET", `/groups?failure_match_id=${id}`))).toMatchObject([{ group_id }]);
      expect(dataOf(await ask("GET", `/candidates?failure_match_id=${id}`))).toMatchObject([{ candidate_id }]);
      expect(await groupOf(id)).toMatchObject({ group_id });
      expect(dataOf(await ask("GET", `/groups/${id}/occurrences`))).toHaveLength(1);
    }
    const other = "0193d6a0-0000-7000-8000-000000000001";
    expect(dataOf(await ask("GET", `/groups?failure_match_id=${other}`))).toEqual([]);
    expect(codeOf(await ask("GET", `/groups/${other}`))).toEqual([404, "group_not_found"]);
    expect((await ask("GET", "/groups?failure_match_id=7")).status).toBe(400);

    const failure = { error_type: "E_ELSE", raw: "other words", failure_match_id: mine };
    for (const path of ["/evaluate", "/suggest"]) {
      expect((await ask("POST", path, failure)).body).toMatchObject({ group_id, failure_match_id: mine.toLowerCase() });
    }
    const { s, read } = homeOf(scene.server.store) as Home;
    const rowsOf = (view: string) =>
      read("view")(`select id::text, failure_match_id from ${s}.${view} where group_id = $1 order by 2`, [group_id]);
    expect(await rowsOf("recovery_candidates")).toEqual(
      [mine.toLowerCase(), own].sort(inOrder).map((id) => [String(candidate_id), id]),
    );
    expect(await rowsOf("mv_top_pending")).toEqual([[String(candidate_id), own]]);
  });
});

it("R6: a match id names a group in a redrive, a merge and the record", async () => {
  const { group } = await scene.deadGroup("outside/named", 3);
  const { group_id, failure_match_id } = group;
  const redrive = (select: object) => scene.as("alice", "POST", "/api/v1/redrives", { select, reason: "named", dry_run: true });
  const started = await redrive({ failure_match_id });
  expect([started.status, started.body]).toMatchObject([201, { counts: { selected: 3 }, select: { group_id } }]);
  expect((await redrive({ group_ids: [failure_match_id] })).body).toMatchObject({ counts: { selected: 3 } });
  expect(codeOf(await redrive({ failure_match_id: "0193d6a0-0000-7000-8000-000000000002" }))).toEqual([404, "group_not_found"]);
  expect(codeOf(await redrive({ failure_match_id, group_id }))).toEqual([400, "invalid_request"]);

  const mine = "6f0b2c1e-9f6d-4c53-8a55-0d1f3c6b7a92";
  const one = await report("E_JOINED", "joined-1", { failure_match_id: mine });
  const other = await report("E_JOINS", "joined-2", { failure_match_id: "6f0b2c1e-9f6d-4c53-8a55-0d1f3c6b7a93" });
  const merged = await ask("POST", `/groups/${mine}/merge`, {
    from: ["6F0B2C1E-9F6D-4C53-8A55-0D1F3C6B7A93"],
    reason: "the same",
  });
  expect([merged.status, merged.body]).toMatchObject([200, { group_id: one.group_id, occurrence_count: 2 }]);
  expect(await groupOf(other.group_id)).toMatchObject({ merged_into: one.group_id });
  expect((await ask("POST", `/groups/${mine}/merge`, { from: ["seven"], reason: "the same" })).status).toBe(400);
  const lines = dataOf(await ask("GET", `/provenance?failure_match_id=${mine}`));
  expect(lines).toEqual(dataOf(await ask("GET", `/provenance?group_id=${one.group_id}`)));
  expect(lines.map(({ event_type }) => event_type)).toContain("merged");
});

describe("resolved in a version", () => {
  it("ends the suggestion; earlier versions are counted and change nothing; that version or a later one is a regression", async () => {
    const { group_id, candidate_id } = await report("E_FIXED", "fixed-1", { version: "1.4.1" });
    const resolved = await ask("POST", `/groups/${group_id}/resolve`, { in_version: "1.4.2", reason: "the date is parsed now" });
    expect([resolved.status, resolved.body]).toMatchObject([
      200,
      { resolved_in: "1.4.2", resolved_by: "alice", regression: false, open_reports: 0, occurrence_count: 1 },
    ]);
    expect(await scene.candidate(candidate_id)).toMatchObject({ decision: "rejected" });
    expect(await report("E_FIXED", "fixed-2", { version: "1.4.1" })).toMatchObject({ candidate_id, occurrence_count: 2 });
    expect(await report("E_FIXED", "fixed-3", { version: "1.4.2-rc.1" })).not.toHaveProperty("regression");
    const back = await report("E_FIXED", "fixed-4", { version: "1.10.0" });
    expect(back).toMatchObject({ regression: true, evaluation_queued: true, occurrence_count: 4 });
    expect(back.candidate_id).not.toBe(candidate_id);
    const group = await groupOf(group_id);
    expect(group).toMatchObject({ regression: true, regressed_in: "1.10.0", resolved_in: "1.4.2", candidate: { round: 2 } });
    expect((group.why as string[]).join(" ")).toContain("a regression");
    const events = dataOf(await ask("GET", `/provenance?group_id=${group_id}`)).map(({ event_type, actor }) => [
      event_type,
      actor,
    ]);
    expect(events).toEqual(
      expect.arrayContaining([
        ["resolved", "alice"],
        ["regression", "system"],
      ]),
    );
    expect(await report("E_FIXED", "fixed-5", { version: "1.10.0" })).not.toHaveProperty("regression");
    const again = await ask("POST", `/groups/${group_id}/resolve`, { in_version: "1.11.0", reason: "now it is" });
    expect(again.body).toMatchObject({ regression: false, regressed_at: null, resolved_in: "1.11.0" });
  });

  it("resolves the open dead letters with it where that is asked for, and leaves them where it is not", async () => {
    const { group } = await scene.deadGroup("outside/resolve", 3);
    const path = `/groups/${group.group_id}/resolve`;
    expect((await ask("POST", path, { reason: "later" })).body).toMatchObject({ open_messages: 3, resolved_in: null });
    expect((await ask("POST", path, { reason: "now", messages: "resolve" })).body).toMatchObject({ open_messages: 0 });
    expect(codeOf(await ask("POST", "/groups/999999/resolve", { reason: "x" }))).toEqual([404, "group_not_found"]);
  });
});

describe("on the command line", () => {
  const run = (...args: string[]) =>
    terminal(args, { env: { MAKEGOOD_URL: scene.server.url, MAKEGOOD_TOKEN: TOKENS.alice }, cwd: ".", width: 250 });

  it("R6: a match id stands for its group", async () => {
    const mine = "6f0b2c1e-9f6d-4c53-8a55-0d1f3c6b7a91";
    const { group_id } = await report("E_CLI", "cli-1", { failure_match_id: mine });
    expect(await run("groups", "show", mine)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`Reported under ${mine}`),
    });
    expect((await run("groups", "list", "--failure-match-id", mine)).stdout).toMatch(new RegExp(`^${group_id} `, "m"));
    expect((await run("candidates", "list", "--failure-match-id", mine)).stdout).toContain("E_CLI");
    const other = await report("E_CLI_2", "cli-2", { failure_match_id: "6f0b2c1e-9f6d-4c53-8a55-0d1f3c6b7a94" });
    const joined = await run("groups", "merge", mine, "6f0b2c1e-9f6d-4c53-8a55-0d1f3c6b7a94", "--reason", "the same");
    expect([joined.code, joined.stdout]).toEqual([0, `group ${group_id} has 2 occurrences now\n`]);
    expect(await groupOf(other.group_id)).toMatchObject({ merged_into: group_id });
    expect(await run("groups", "merge", mine, "seven", "--reason", "x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("failure_match_id"),
    });
    expect(await run("groups", "show", "seven")).toMatchObject({ code: 2, stderr: expect.stringContaining("failure_match_id") });
  });

  it("R5: claim says how to report, and outcome reports", async () => {
    const { candidate_id: id } = await reported("E_HAND", 2);
    const claimed = await run("candidates", "claim", String(id));
    expect(claimed).toMatchObject({ code: 0, stdout: expect.stringContaining("of 2 reported failures is yours until") });
    const [, execution = ""] = /--execution-id (\S+)/.exec(claimed.stdout) ?? [];
    const told = await run("candidates", "outcome", String(id), "--execution-id", execution, "--healed", "2", "--failed", "0");
    expect([told.code, told.stdout]).toEqual([0, `candidate ${id} is succeeded\n`]);
  });

  it("a group is resolved in a version, and shown as such and as a regression", async () => {
    const { group_id } = await report("E_SHOWN", "shown-1");
    const told = await run("groups", "resolve", String(group_id), "--in-version", "2.0.0", "--reason", "mended");
    expect([told.code, told.stdout]).toEqual([0, `group ${group_id} is resolved in version 2.0.0\n`]);
    expect((await run("groups", "list")).stdout).toContain("[resolved in 2.0.0]");
    await report("E_SHOWN", "shown-2", { version: "2.0.1" });
    expect((await run("groups", "list")).stdout).toContain("[regression]");
    expect((await run("groups", "show", String(group_id))).stdout).toContain("failed again in version 2.0.1");
  });
});
