/**
 * POST /api/v1/recovery/ingest, evaluate and suggest on a real server: what is counted and what is not, what is refused, and that nothing
 * in a report can do anything (CON-23, DR-35, DR-23, attacks 22 and 24).
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { dataOf, inOrder, type Json, type RecoveryServer, startRecoveryServer } from "./recovery-support.ts";

let scene: RecoveryServer;
beforeAll(async () => {
  scene = await startRecoveryServer();
});
afterAll(() => scene.close());

const BASE = "/api/v1/recovery";
const failure = (topic: string, more: Json = {}): Json => ({
  error_type: "TIMEOUT",
  raw: "no answer within 15 s",
  topic,
  ...more,
});
const ingest = (body: unknown, headers: Record<string, string> = {}) =>
  scene.as("alice", "POST", `${BASE}/ingest`, body, headers);

describe("ingest (REC-22)", () => {
  it("CON-23: counts a failure once per key: 201, then 200 with nothing counted, then 201 under another key", async () => {
    const failure_match_id = randomUUID();
    const body = { failure_match_id, failure_payload: failure("in/once"), idempotency_key: "once-1" };
    const first = await ingest(body);
    expect([first.status, first.body]).toEqual([
      201,
      {
        candidate_id: expect.any(Number),
        group_id: expect.any(Number),
        failure_match_id,
        status: "accepted",
        is_duplicate: false,
        occurrence_count: 1,
        evaluation_queued: true,
      },
    ]);
    expect(first.headers.get("location")).toBe(`${BASE}/candidates/${first.body.candidate_id}`);
    const again = await ingest(body);
    expect([again.status, again.body]).toMatchObject([
      200,
      { status: "duplicate", is_duplicate: true, occurrence_count: 1, candidate_id: first.body.candidate_id },
    ]);
    const other = await ingest({ ...body, idempotency_key: "once-2" });
    expect([other.status, other.body]).toMatchObject([201, { occurrence_count: 2, candidate_id: first.body.candidate_id }]);
  });

  it("DR-35: the same key with another payload is 422 and changes nothing", async () => {
    const first = await ingest({ failure_payload: failure("in/conflict"), idempotency_key: "c-1" });
    const other = await ingest({ failure_payload: failure("in/conflict", { raw: "something else" }), idempotency_key: "c-1" });
    expect([other.status, other.body.code]).toEqual([422, "key_conflict"]);
    // The payload is compared as text: another spelling is another payload.
    const spelled = await ingest(
      `{"idempotency_key":"c-1","failure_payload": ${JSON.stringify(failure("in/conflict"), null, 1)}}`,
    );
    expect(spelled.status).toBe(422);
    expect(await scene.candidate(first.body.candidate_id)).toMatchObject({ occurrence_count: 1 });
  });

  it("takes the key from the Idempotency-Key header where the body has none", async () => {
    const body = { failure_payload: failure("in/header") };
    expect((await ingest(body, { "idempotency-key": "h-1" })).status).toBe(201);
    expect((await ingest(body, { "idempotency-key": '"h-1"' })).status).toBe(200);
    expect((await ingest({ ...body, idempotency_key: "h-2" }, { "idempotency-key": "h-1" })).body.occurrence_count).toBe(2);
  });

  it("loses nothing of a hundred at once, and makes one group of them", async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) => ingest({ failure_payload: failure("in/many"), idempotency_key: `many-${n}` })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(Math.max(...answers.map(({ body }) => body.occurrence_count as number))).toBe(100);
    expect(new Set(answers.map(({ body }) => body.candidate_id)).size).toBe(1);
  });

  it("queues no evaluation where none is wanted", async () => {
    const answer = await ingest({ failure_payload: failure("in/quiet"), enqueue_evaluation: false });
    expect([answer.status, answer.body.evaluation_queued]).toEqual([201, false]);
    expect(await scene.candidate(answer.body.candidate_id)).toMatchObject({ evaluation_status: "unevaluated" });
  });

  it("joins a supplied failure_match_id to the group of its failure, whatever its case", async () => {
    const own = await ingest({ failure_payload: failure("in/join") });
    const id = randomUUID();
    const joined = await ingest({ failure_match_id: id.toUpperCase(), failure_payload: failure("in/join") });
    expect(joined.body).toMatchObject({ group_id: own.body.group_id, occurrence_count: 2, failure_match_id: id });
    expect((await ingest({ failure_match_id: id, failure_payload: failure("in/elsewhere") })).body.group_id).toBe(
      own.body.group_id,
    );
  });

  it("where the seeds' two names for one thing both stand, the more exact one counts", async () => {
    const both = { error_type: "Error", error_code: "E_EXACT", raw: "Error: exactly this", error_message: "exactly this" };
    const { body } = await ingest({ failure_payload: failure("in/names", both) });
    const group = (await scene.as("alice", "GET", `${BASE}/groups/${body.group_id}`)).body;
    expect(group).toMatchObject({ error_code: "E_EXACT", template: "exactly this" });
  });

  it("is counted by what came of it (REC-26)", async () => {
    const countOf = (text: string, status: string): number =>
      Number(new RegExp(`^recovery_ingest_total\\{status="${status}",source="api"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0);
    const before = await metrics();
    await ingest({ nonsense: true });
    const text = await metrics();
    const added = ["accepted", "duplicate", "error"].map((status) => countOf(text, status) - countOf(before, status));
    expect(added, "what is refused was not accepted").toEqual([0, 0, 1]);
    for (const line of [
      /^recovery_ingest_total\{status="accepted",source="api"\} [1-9]/m,
      /^recovery_ingest_total\{status="duplicate",source="api"\} [1-9]/m,
      /^recovery_ingest_total\{status="error",source="api"\} [1-9]/m,
      /^recovery_ingest_duplicates_total\{detection_method="idempotency_key"\} [1-9]/m,
      /^recovery_ingest_enqueue_total\{status="queued"\} [1-9]/m,
      /^recovery_ingest_latency_seconds_count\{status="accepted"\} [1-9]/m,
      /^recovery_evaluation_queue_depth \d/m,
    ])
      expect(text).toMatch(line);
  });

  async function metrics(): Promise<string> {
    const response = await scene.server.api("/metrics", { headers: { authorization: "Bearer alice-secret-0123456789" } });
    return response.text();
  }
});

describe("what does not fit", () => {
  it.each<[string, unknown, string[]]>([
    ["no body to speak of", {}, ["failure_payload"]],
    ["no object", [], ["."]],
    ["a payload of another kind", { failure_payload: "TIMEOUT" }, ["failure_payload"]],
    ["a payload that says nothing", { failure_payload: { meta: {} } }, ["failure_payload.error_type"]],
    [
      "everything wrong at once",
      {
        failure_match_id: "7",
        idempotency_key: 5,
        enqueue_evaluation: "yes",
        failure_payload: { error_type: 1, raw: [], skill_id: {}, tenant_id: "a\u0000b", topic: "x".repeat(300) },
        surprise: 1,
      },
      [
        "surprise",
        "failure_match_id",
        "idempotency_key",
        "enqueue_evaluation",
        "failure_payload.error_type",
        "failure_payload.raw",
        "failure_payload.topic",
        "failure_payload.skill_id",
        "failure_payload.tenant_id",
      ],
    ],
    ["a key of 256 bytes", { idempotency_key: "k".repeat(256), failure_payload: failure("in/x") }, ["idempotency_key"]],
    ["a member twice", '{"failure_payload":{"raw":"a"},"failure_payload":{"raw":"b"}}', ["failure_payload"]],
    ["__proto__ beside the payload", '{"__proto__":{"polluted":1},"failure_payload":{"raw":"a"}}', ["__proto__"]],
  ])("%s is 400 and names it", async (_what, body, fields) => {
    const answer = await ingest(body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    expect((answer.body.errors as { field: string }[]).map(({ field }) => field).sort(inOrder)).toEqual(
      [...fields].sort(inOrder),
    );
  });

  it("broken JSON, another media type and too much of it are refused", async () => {
    expect((await ingest('{"failure_payload":')).status).toBe(400);
    expect((await ingest("<x/>", { "content-type": "text/xml" })).status).toBe(415);
    expect((await ingest({ failure_payload: failure("in/big", { raw: "x".repeat(6_500_000) }) })).status).toBe(413);
    expect((await ingest({ failure_payload: failure("in/deep"), more: 1 })).status).toBe(400);
    const deep = `${"[".repeat(300)}${"]".repeat(300)}`;
    expect((await ingest(`{"failure_payload":{"raw":"a","meta":${deep}}}`)).status).toBe(400);
  });

  it("an actor type that nobody may claim is refused", async () => {
    expect((await ingest({ failure_payload: failure("in/x") }, { "x-actor-type": "system" })).status).toBe(400);
    expect((await ingest({ failure_payload: failure("in/x") }, { "x-actor-type": "agent" })).status).toBe(201);
  });
});

describe("hostile failures", () => {
  it("a text of a mebibyte is one failure, and the same kind as its short sibling", async () => {
    const text = "disk /dev/sda1 is full ";
    const long = await ingest({
      failure_payload: failure("in/long", { error_type: "ENOSPC", raw: text + "x ".repeat(524_000) }),
    });
    expect(long.status).toBe(201);
    const page = await scene.as("alice", "GET", `${BASE}/groups/${long.body.group_id}/occurrences`);
    expect(String(dataOf(page)[0]?.error_message).length).toBeLessThanOrEqual(4_096);
    expect(String(dataOf(page)[0]?.error_message)).toContain("disk");
  });

  it.each([
    ["newlines", "\n"],
    ["quotes", '"'],
    ["characters that are six bytes each", "\u0001"],
  ])("a mebibyte of %s fits, with its escapes", async (_what, character) => {
    const raw = `disk full${character.repeat(1_048_576 - 9)}`;
    const answer = await ingest({ failure_payload: failure("in/escaped", { error_type: "ENOSPC", raw }) });
    expect([answer.status, answer.body.status]).toEqual([201, "accepted"]);
  });

  it("control characters, lone surrogates and bidi marks come in and do no harm", async () => {
    const raw = "a\u0000b\u001b[31m\u202e\ud800 end";
    const answer = await ingest({
      failure_payload: failure("in/control", { error_type: "BAD\u0000CODE", raw, stack_trace: raw }),
    });
    expect(answer.status).toBe(201);
    const page = await scene.as("alice", "GET", `${BASE}/groups/${answer.body.group_id}/occurrences?payload=true`);
    expect(page.status).toBe(200);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that they are gone is what is tested
    expect(dataOf(page)[0]?.error_message).not.toMatch(/[\u0000-\u0008\u001b]/);
  });

  it("__proto__ and constructor in a payload are data (attack 22)", async () => {
    const payload =
      '{"error_type":"TIMEOUT","raw":"x","topic":"in/proto","__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const answer = await ingest(`{"failure_payload":${payload}}`);
    expect(answer.status).toBe(201);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    const page = await scene.as("alice", "GET", `${BASE}/groups/${answer.body.group_id}/occurrences?payload=true`);
    expect(page.text).toContain(`"failure_payload":${payload}`);
  });

  it("a payload is shown exactly as it came, big numbers and all", async () => {
    const payload = '{ "error_type":"X-1", "raw":"n", "topic":"in/exact", "n":18446744073709551616, "e":1e400, "a":1, "a":2 }';
    const answer = await ingest(`{"failure_payload":${payload}}`);
    const page = await scene.as("alice", "GET", `${BASE}/groups/${answer.body.group_id}/occurrences?payload=true`);
    expect(page.text).toContain(`"failure_payload":${payload}`);
  });

  it("DR-23: a report names a sink, a URL and headers, and nothing is dialled for it", async () => {
    const { receiver } = scene;
    const before = receiver.requests.length;
    const payload = failure("in/ssrf", { sink: receiver.url, url: receiver.url, headers: { authorization: "stolen" } });
    const { body } = await ingest({ failure_payload: payload });
    await vi.waitFor(async () => {
      expect(await scene.candidate(body.candidate_id)).toMatchObject({ selected_action: "retry_exponential" });
    }, 15_000);
    const run = await scene.as("alice", "POST", `${BASE}/candidates/${body.candidate_id}/execute`);
    expect([run.status, run.body.code]).toEqual([409, "action_refused"]);
    expect(receiver.requests.length).toBe(before);
  });
});

describe("evaluate (REC-14) and suggest (EV-48)", () => {
  it("TIMEOUT is retry_exponential at 0.85, explained, and nothing is kept", async () => {
    const before = (await scene.as("alice", "GET", `${BASE}/stats`)).body;
    const answer = await scene.as("alice", "POST", `${BASE}/evaluate`, {
      error_code: "TIMEOUT",
      error_message: "never seen before: tango",
      skill_id: "s",
      occurrence_count: 1,
    });
    expect([answer.status, answer.body]).toMatchObject([
      200,
      { recommended_action: "retry_exponential", confidence: 0.85, group_id: null, failure_match_id: expect.any(String) },
    ]);
    const rules = answer.body.rules_evaluated as Json[];
    expect(rules.length).toBeGreaterThanOrEqual(10);
    // The rules of causes stand above it, and a bare code is not theirs.
    const [first] = rules.filter(({ matched }) => matched);
    expect(first).toMatchObject({ rule_id: "timeout_retry", contribution: { kind: "prior", score: 0.85 } });
    const after = (await scene.as("alice", "GET", `${BASE}/stats`)).body;
    expect([after.groups, after.occurrences]).toEqual([before.groups, before.occurrences]);
  });

  it("suggest adds what is known of the group", async () => {
    const { body } = await ingest({ failure_payload: failure("in/known", { raw: "known failure" }) });
    const asked = { error_type: "TIMEOUT", raw: "known failure", topic: "in/known" };
    const answer = await scene.as("alice", "POST", `${BASE}/suggest`, asked);
    expect(answer.body).toMatchObject({
      group_id: body.group_id,
      group: { occurrence_count: 1 },
      candidate: { candidate_id: body.candidate_id },
    });
    const unknown = await scene.as("alice", "POST", `${BASE}/suggest`, { error_code: "NEW_ONE", topic: "in/never" });
    expect(unknown.body).toMatchObject({ group: null, candidate: null });
  });

  it.each<[unknown]>([
    [{}],
    [{ error_code: 7 }],
    [{ error_code: "X", occurrence_count: 0 }],
    [{ error_code: "X", unknown: 1 }],
    ["null"],
  ])("%j is 400", async (body) => {
    const answer = await scene.as("alice", "POST", `${BASE}/evaluate`, body);
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
  });

  it("a mebibyte of text is evaluated quickly", async () => {
    const took = async (words: number) => {
      const startMs = performance.now();
      const answer = await scene.as("alice", "POST", `${BASE}/evaluate`, { error_code: "X", error_message: "a1 ".repeat(words) });
      expect(answer.status).toBe(200);
      return performance.now() - startMs;
    };
    const best = async (words: number) => Math.min(await took(words), await took(words), await took(words));
    // A tenth of it takes a tenth, and what every request takes; with the square of the length it would be a hundredth.
    expect(await best(349_000)).toBeLessThan(40 * (await best(34_900)));
  });
});
