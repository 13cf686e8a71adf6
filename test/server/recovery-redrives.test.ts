/**
 * Redrives over HTTP: pressed twice is one, the list is frozen and shown before it begins, what may be asked for, and a dead letter again
 * with another payload.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { dataOf, inOrder, type RecoveryServer, startRecoveryServer, TOKENS } from "./recovery-support.ts";

let scene: RecoveryServer;
beforeAll(async () => {
  scene = await startRecoveryServer();
});
afterAll(() => scene.close());

const REDRIVES = "/api/v1/redrives";
const start = (body: unknown, headers: Record<string, string> = {}) => scene.as("alice", "POST", REDRIVES, body, headers);
const QUICK = { canary: 0, rate_per_second: 1_000, ramp_from: 1_000 };
const until = (id: unknown, status: string) =>
  vi.waitFor(async () => expect((await scene.as("alice", "GET", `${REDRIVES}/${id}`)).body).toMatchObject({ status }), {
    timeout: 10_000,
    interval: 50,
  });

describe("a redrive", () => {
  it("is planned, shown, begun by resume, and done once for two presses of one key", async () => {
    const { group } = await scene.deadGroup("drive/plan", 4);
    const body = { select: { group_id: group.group_id }, reason: "mended", dry_run: true, idempotency_key: "press", ...QUICK };
    const planned = await start(body);
    expect([planned.status, planned.body]).toMatchObject([
      201,
      { status: "planned", actor: "alice", counts: { selected: 4, waiting: 4 } },
    ]);
    const id = planned.body.redrive_id;
    expect(planned.headers.get("location")).toBe(`${REDRIVES}/${id}`);
    const twice = await start(body);
    expect([twice.status, twice.body.redrive_id]).toEqual([200, id]);
    const byHeader = await start({ ...body, idempotency_key: undefined }, { "idempotency-key": "press" });
    expect([byHeader.status, byHeader.body.redrive_id], "the header is the same key").toEqual([200, id]);
    const other = await start({ ...body, reason: "another one" });
    expect([other.status, other.body.code]).toEqual([422, "key_conflict"]);
    expect(dataOf(await scene.as("alice", "GET", `${REDRIVES}/${id}/items`)).map(({ state }) => state)).toEqual(
      Array.from({ length: 4 }, () => "waiting"),
    );
    scene.receiver.status = 200;
    expect((await scene.as("bob", "POST", `${REDRIVES}/${id}/resume`, { version: planned.body.version })).status).toBe(200);
    await until(id, "done");
    expect((await scene.as("alice", "GET", `${REDRIVES}/${id}`)).body).toMatchObject({ counts: { healed: 4 }, progress: 1 });
    expect((await scene.as("alice", "POST", `${REDRIVES}/${id}/resume`)).status).toBe(409);
  });

  it("is counted by what became of its messages, each once: makegood_redrive_items_total", async () => {
    const read = async (): Promise<Record<string, number>> => {
      const response = await scene.server.api("/metrics", { headers: { authorization: `Bearer ${TOKENS.alice}` } });
      const lines = (await response.text()).matchAll(/^makegood_redrive_items_total\{state="(\w+)"\} (\d+)$/gm);
      return Object.fromEntries([...lines].map(([, state, count]) => [state, Number(count)]));
    };
    const { group, ids } = await scene.deadGroup("drive/counted", 5);
    const before = await read();
    const planned = await start({
      select: { group_id: group.group_id },
      reason: "x",
      dry_run: true,
      failure_share_max: 1,
      ...QUICK,
    });
    // One that another redrive took up is left alone.
    await scene.as("bob", "POST", `/api/v1/messages/${ids[0]}/resolve`, { reason: "by hand" });
    await scene.as("alice", "POST", `${REDRIVES}/${planned.body.redrive_id}/resume`);
    await until(planned.body.redrive_id, "done");
    const added = async () => {
      const now = await read();
      return ["sent", "healed", "failed", "skipped"].map((state) => (now[state] ?? 0) - (before[state] ?? 0));
    };
    // The receiver still refuses what it is sent.
    await vi.waitFor(async () => expect(await added()).toEqual([4, 0, 4, 1]), { timeout: 15_000, interval: 50 });
  });

  it("is paused, resumed and cancelled; what was not sent stays a dead letter", async () => {
    const { group, ids } = await scene.deadGroup("drive/cancel", 3);
    const { body } = await start({ select: { group_id: group.group_id }, reason: "x", dry_run: true });
    const cancelled = await scene.as("alice", "POST", `${REDRIVES}/${body.redrive_id}/cancel`, { reason: "not now" });
    expect([cancelled.status, cancelled.body]).toMatchObject([200, { status: "cancelled", counts: { skipped: 3 } }]);
    for (const id of ids)
      expect((await scene.as("alice", "GET", `/api/v1/messages/${id}`)).body).toMatchObject({ status: "dead", generation: 0 });
    expect((await scene.as("alice", "POST", `${REDRIVES}/${body.redrive_id}/pause`)).status).toBe(409);
  });

  it("of nothing is an error that says so", async () => {
    const answer = await start({ select: { topic: "drive/nothing" }, reason: "x" });
    expect([answer.status, answer.body.code]).toEqual([409, "nothing_selected"]);
  });

  it("what is refused names its members as they are called over HTTP, in texts as well", async () => {
    const answer = await start({ select: {}, reason: "x", delay_ms: 1e12, generation_max: 40_000 });
    const errors = answer.body.errors as { field: string; detail: string }[];
    expect(errors.map(({ field }) => field).sort(inOrder)).toEqual(["delay_ms", "generation_max", "select"]);
    const members = "group_id, failure_match_id, group_ids, topic, tenant_id, error_code, since, until, redrive_id or ids";
    expect(answer.body.detail).toContain(`must name a ${members}: nothing selects everything`);
    expect(JSON.stringify(answer.body)).not.toMatch(/groupId|tenantId|delayMs|generationMax/);
  });

  it("of another size than was seen is refused", async () => {
    const { group } = await scene.deadGroup("drive/size", 2);
    const answer = await start({ select: { group_id: group.group_id }, reason: "x", confirm: 3 });
    expect([answer.status, answer.body.code]).toEqual([409, "confirmation_needed"]);
  });

  it("takes what was seen and no more: the refusal has the mark that the next request brings", async () => {
    const { ids } = await scene.deadGroup("drive/seen", 2);
    const select = { topic: "drive/seen" };
    const asked = await start({ select, reason: "x", confirm: 1, dry_run: true });
    expect([asked.status, asked.body]).toMatchObject([409, { code: "confirmation_needed", seen: expect.any(String) }]);
    const message = { topic: "drive/seen", payload: 1, key: "later" };
    const { body } = await scene.as("alice", "POST", "/api/v1/messages", message);
    const later = () => scene.as("alice", "GET", `/api/v1/messages/${body.id}`);
    await vi.waitFor(async () => expect((await later()).body.status).toBe("dead"), { timeout: 10_000, interval: 20 });
    const made = await start({ select: { ...select, seen: asked.body.seen }, reason: "x", confirm: 2, dry_run: true });
    expect([made.status, made.body.counts]).toMatchObject([201, { selected: 2 }]);
    const items = dataOf(await scene.as("alice", "GET", `${REDRIVES}/${made.body.redrive_id}/items`));
    expect(items.map(({ message_id }) => message_id).sort(inOrder)).toEqual([...ids].sort(inOrder));
    const wrong = await start({ select: { ...select, seen: "x" }, reason: "x" });
    expect([wrong.status, wrong.body]).toMatchObject([400, { code: "invalid_request", errors: [{ field: "seen" }] }]);
  });

  it.each<[string, unknown, string[]]>([
    ["nothing", {}, ["reason", "select"]],
    ["no selection in it", { select: {}, reason: "x" }, ["select"]],
    [
      "wrong types",
      { select: { group_id: "7", ids: ["x"] }, reason: 5, dry_run: "no", canary: -1 },
      ["canary", "dry_run", "reason", "select.group_id", "select.ids.0"],
    ],
    [
      "a plan out of range",
      { select: { group_id: 1 }, reason: "x", rate_per_second: 0, failure_share_max: 2, canary: 1_000_000 },
      ["canary", "failure_share_max", "rate_per_second"],
    ],
    ["unknown members", { select: { group_id: 1, everything: true }, reason: "x", force: true }, ["force", "select.everything"]],
    ["a mode that is not for people", { select: { group_id: 1 }, reason: "x", mode: "copy" }, ["mode"]],
    ["__proto__", '{"select":{"group_id":1},"reason":"x","__proto__":{"dry_run":true}}', ["__proto__"]],
  ])("asked for with %s is 400 and names it", async (_what, body, fields) => {
    const answer = await start(body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    expect((answer.body.errors as { field: string }[]).map(({ field }) => field).sort(inOrder)).toEqual(fields);
  });

  it.each(["018f0000-0000-7000-8000-000000000000", "nope"])("%s is 404", async (id) => {
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/items"],
      ["POST", "/pause"],
      ["POST", "/resume"],
      ["POST", "/cancel"],
    ] as const) {
      const answer = await scene.as("alice", method, `${REDRIVES}/${id}${path}`);
      expect([path, answer.status, answer.body.code]).toEqual([path, 404, "redrive_not_found"]);
    }
  });
});

describe("edit and retry", () => {
  const edit = (id: unknown, body: unknown) => scene.as("alice", "POST", `/api/v1/messages/${id}/edit`, body);

  it("sends another payload under the same key, and the original stays, resolved", async () => {
    const { ids } = await scene.deadGroup("edit/one", 1);
    scene.receiver.status = 200;
    const payload = '{ "n":18446744073709551616, "fixed":true }';
    const answer = await edit(ids[0], `{"reason":"a typo","payload":${payload}}`);
    expect([answer.status, answer.body]).toMatchObject([
      201,
      { topic: "edit/one", key: "edit/one-0", replay_of: ids[0], edited: true },
    ]);
    expect(answer.text).toContain(`"payload":${payload}`);
    expect(answer.body.id).not.toBe(ids[0]);
    await vi.waitFor(async () => {
      expect((await scene.as("alice", "GET", `/api/v1/messages/${answer.body.id}`)).body).toMatchObject({ status: "delivered" });
    }, 15_000);
    expect((await scene.as("alice", "GET", `/api/v1/messages/${answer.body.id}`)).body).toMatchObject({
      replay_of: ids[0],
      edited: true,
    });
    const original = (await scene.as("alice", "GET", `/api/v1/messages/${ids[0]}`)).body;
    expect(original).toMatchObject({ status: "dead", resolution: "resolved", payload: { n: 0 } });
    expect((await edit(ids[0], { reason: "again", payload: 1 })).status).toBe(409);
  });

  it.each<[string, unknown, string[]]>([
    ["nothing", {}, ["payload", "reason"]],
    ["a member twice", '{"reason":"x","payload":1,"payload":2}', ["payload"]],
    ["wrong types", { reason: 1, payload: 1, key: 7, revision: "1" }, ["key", "reason", "revision"]],
    ["unknown members", { reason: "x", payload: 1, topic: "a/b" }, ["topic"]],
  ])("with %s is 400", async (_what, body, fields) => {
    const answer = await edit("018f0000-0000-7000-8000-000000000000", body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    expect((answer.body.errors as { field: string }[]).map(({ field }) => field).sort(inOrder)).toEqual(fields);
  });

  it("of a message that is not there is 404", async () => {
    for (const id of ["018f0000-0000-7000-8000-000000000000", "nope"]) {
      expect((await edit(id, { reason: "x", payload: 1 })).body.code).toBe("message_not_found");
    }
  });
});

describe("while a copy is on its way to the fallback", () => {
  it("a replay and an edit are refused with the copy's name; force sends both, and an execution touches what was shown", async () => {
    const { candidate, ids } = await scene.deadGroup("drive/carried", 1);
    const path = `/api/v1/recovery/candidates/${candidate.candidate_id}`;
    // Busy for a while: the copy waits for its next attempt.
    scene.receiver.status = 503;
    const sink = { kind: "http", url: scene.receiver.url };
    await scene.as("alice", "PUT", "/api/v1/topics/drive/carried", { sink, fallback: sink, retry: { attempts_max: 9 } });
    await scene.as("alice", "PATCH", path, { selected_action: "fallback_model" });
    await scene.as("alice", "POST", `${path}/approve`);
    const { seen } = (await scene.candidate(candidate.candidate_id)).blast_radius as { seen: string };
    const stale = await scene.as("alice", "POST", `${path}/execute`, { redrive: { seen: "x" } });
    expect([stale.status, stale.body]).toMatchObject([400, { errors: [{ field: "seen" }] }]);
    const run = await scene.as("alice", "POST", `${path}/execute`, { redrive: { seen, confirm: 1, canary: 0 } });
    expect([run.status, run.body.code]).toEqual([200, undefined]);
    const redriveId = run.body.redrive_id;
    const item = await vi.waitFor(
      async () => {
        const [one] = dataOf(await scene.as("alice", "GET", `${REDRIVES}/${redriveId}/items?state=sent`));
        return one ?? expect.fail("nothing was sent yet");
      },
      { timeout: 10_000, interval: 20 },
    );
    const message = `/api/v1/messages/${ids[0]}`;
    const named = { code: "carried", id: ids[0], carrier_id: item.carrier_id, redrive_id: redriveId };
    const replayed = await scene.as("bob", "POST", `${message}/replay`, { reason: "now" });
    expect([replayed.status, replayed.body]).toMatchObject([409, named]);
    const edited = await scene.as("bob", "POST", `${message}/edit`, { reason: "now", payload: 1 });
    expect([edited.status, edited.body]).toMatchObject([409, named]);
    const discard = await scene.as("bob", "POST", `${message}/discard`, { reason: "now", force: true });
    expect([discard.status, discard.body.code]).toEqual([400, "invalid_message"]);
    const forced = await scene.as("bob", "POST", `${message}/replay`, { reason: "both may get it", force: true });
    expect([forced.status, forced.body.generation]).toEqual([200, 1]);
  });
});

describe("without tokens", () => {
  it("two-person approval says how to get a second name", async () => {
    const open = await startRecoveryServer({ MAKEGOOD_TOKENS: "" });
    try {
      const { candidate } = await open.deadGroup("open/one", 1);
      const path = `/api/v1/recovery/candidates/${candidate.candidate_id}`;
      const { version } = (await open.as("alice", "GET", "/api/v1/recovery/actions/skip_task")).body;
      await open.as("alice", "PUT", "/api/v1/recovery/actions/skip_task", { approval: "two", version });
      await open.as("alice", "PATCH", path, { selected_action: "skip_task" });
      const approved = await open.as("bob", "POST", `${path}/approve`);
      expect(approved.body).toMatchObject({ approvals: [{ actor: "local" }], hint: expect.stringContaining("MAKEGOOD_TOKENS") });
      const run = await open.as("alice", "POST", `${path}/execute`);
      expect([run.status, run.body]).toMatchObject([
        409,
        { code: "approval_needed", detail: expect.stringContaining("MAKEGOOD_TOKENS") },
      ]);
    } finally {
      await open.close();
    }
  });
});
