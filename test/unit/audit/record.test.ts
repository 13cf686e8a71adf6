/**
 * What an audit record is and what an error means for it: the registry, the envelope, the least of each type, limits, redaction and
 * the classes of database errors.
 */
import { describe, expect, it } from "vitest";
import { decide } from "../../../src/message/decide.ts";
import { MakegoodError } from "../../../src/message/errors.ts";
import { redact } from "../../../src/message/redact.ts";
import { retryPolicy } from "../../../src/message/retry-policy.ts";
import { readRecord, recordSchema } from "../../../src/presets/audit/record.ts";
import { AUDIT_TYPES, auditKind } from "../../../src/presets/audit/registry.ts";
import { createService } from "../../../src/presets/audit/sender.ts";
import { auditTopics, outcomeOfWrite, quarantineSink } from "../../../src/presets/audit/topics.ts";
import { createMemoryAudit } from "../../../src/store/memory/audit.ts";
import { DATA, envelope, TYPES } from "../../audit/records.ts";

const kindOf = (type: string) => auditKind(type)!;
const faultsOf = (type: string, value: unknown) => {
  const read = readRecord(kindOf(type), typeof value === "string" ? value : JSON.stringify(value));
  return read.ok ? [] : read.faults.map(({ field }) => field);
};

describe("the registry", () => {
  it("DA-20: a type, its path and its topic have one name, and the seed's other names lead to it", () => {
    expect(AUDIT_TYPES.map(({ type }) => type)).toEqual([
      "orchestration",
      "signal-processing",
      "ai-decisions",
      "executions",
      "notifications",
      "effectiveness",
    ]);
    for (const { type, aliases } of AUDIT_TYPES) for (const name of [type, ...aliases]) expect(auditKind(name)?.type).toBe(type);
    expect(auditKind("ai_analysis")?.type).toBe("ai-decisions");
    expect(auditKind("signal_processing")?.type).toBe("signal-processing");
    expect(auditKind("__proto__")).toBeNull();
    const names = auditTopics(createMemoryAudit()).map(({ name }) => name);
    expect(names).toEqual([...TYPES.map((type) => `audit/${type}`), "audit/quarantine"]);
    expect(auditTopics(null)).toEqual([]);
  });

  it("DA-27, N13: a worker's writes are bounded and rated, so that requests find a connection", () => {
    const definitions = auditTopics(createMemoryAudit()).map(({ definition }) => definition);
    // Fewer at once than a pool has connections, whatever waits in all of them.
    expect(definitions.reduce((sum, { concurrency }) => sum + (concurrency ?? 99), 0)).toBeLessThan(10);
    for (const { ratePerSecond } of definitions) expect(ratePerSecond).toBe(20);
  });

  it("DA-18: six attempts and no seventh, each after its own wait", () => {
    for (const { definition } of auditTopics(createMemoryAudit())) expect(definition.retry).toEqual({ policy: "audit" });
    const rules = { policy: retryPolicy({ policy: "audit", jitter: "none" })!, ordering: "key", onUnknown: "retry" } as const;
    const failed = { kind: "retry", code: "http_500", error: "x" } as const;
    const settledAs = (attempt: number) => decide({ attempt, base: 0, handedDown: true, suspicion: 0 }, failed, rules, 0);
    const minutes = [1, 2, 3, 4, 5].map((attempt) => (settledAs(attempt) as { delayMs: number }).delayMs / 60_000);
    // The first wait, one minute, stands before the first attempt: the direct try was what failed.
    expect(minutes).toEqual([5, 15, 60, 240, 1_440]);
    expect(settledAs(6)).toMatchObject({ kind: "dead" });
  });

  it("DA-28: an outage gives the attempt's number out again, however often; an unknown effect that is to be held is held", () => {
    const rules = { policy: retryPolicy({ policy: "audit", jitter: "none" })!, ordering: "key", onUnknown: "retry" } as const;
    const away = { kind: "retry", code: "http_503", error: "x", outage: true } as const;
    const message = { attempt: 6, base: 0, handedDown: true, suspicion: 0 } as const;
    expect(decide(message, away, rules, 0)).toMatchObject({ kind: "retry", counted: false });
    const silent = { kind: "unknown", code: "timeout", error: "x", outage: true } as const;
    expect(decide(message, silent, rules, 0)).toMatchObject({ kind: "retry", counted: false, outcome: "unknown" });
    expect(decide(message, silent, { ...rules, onUnknown: "hold" }, 0)).toMatchObject({ kind: "hold" });
  });
});

describe("a record", () => {
  it("fits with its least, and keeps unknown members and the exact text", () => {
    for (const type of TYPES) {
      const text = ` ${JSON.stringify(envelope("e-1", type, { later: { added: [1] } }))}\n`;
      const read = readRecord(kindOf(type), text);
      expect(read).toMatchObject({ ok: true, record: { eventId: "e-1", auditType: type, payload: text } });
    }
  });

  it("DA-23: event times keep their milliseconds", () => {
    const read = readRecord(kindOf("executions"), JSON.stringify(envelope("e-1")));
    expect(read.ok && read.record.occurredAt.toISOString()).toBe("2026-02-03T04:05:06.789Z");
  });

  it("names everything that is wrong at once", () => {
    expect(faultsOf("ai-decisions", {})).toEqual([
      "event_id",
      "correlation_id",
      "actor",
      "resource",
      "outcome",
      "occurred_at",
      "data",
    ]);
    const without = { ...envelope("e-1", "ai-decisions"), data: { confidence: 1.5 } };
    expect(faultsOf("ai-decisions", without)).toEqual(["data.fingerprint", "data.confidence"]);
    for (const [type, data] of Object.entries(DATA)) {
      expect(faultsOf(type, { ...envelope("e-1"), data: {} }), type).toEqual(Object.keys(data).map((name) => `data.${name}`));
    }
  });

  it.each([
    ["event_id", ""],
    ["event_id", "x".repeat(256)],
    ["event_id", "a\u0000b"],
    ["event_id", 5],
    ["actor", "line\nbreak"],
    ["resource", "x".repeat(1_025)],
    ["occurred_at", "yesterday"],
    ["occurred_at", "2026-02-03T04:05:06"],
    ["occurred_at", "0000-01-01T00:00:00Z"],
    ["occurred_at", "2026-13-01T00:00:00Z"],
    ["occurred_at", "2026-02-29T00:00:00Z"],
    ["data", []],
  ])("refuses %s = %j", (field, value) => {
    expect(faultsOf("executions", { ...envelope("e-1"), [field]: value })).toEqual([field]);
  });

  it("DA-13: what is malformed is a value that says so, never a throw", async () => {
    for (const text of ["", "{", "null", "[]", '"x"', "\ud800", '{"event_id":'])
      expect(faultsOf("executions", text), text).toEqual(["."]);
    const context = { signal: new AbortController().signal, timeoutMs: 1_000 };
    const deliver = (payload: string) =>
      quarantineSink(createMemoryAudit()).deliver(
        { payload } as Parameters<ReturnType<typeof quarantineSink>["deliver"]>[0],
        context,
      );
    for (const payload of ["null", "1", "{}", '{"audit_type":"nobody","record":"{}"}', '{"audit_type":"executions","record":7}'])
      expect(await deliver(payload), payload).toMatchObject({ kind: "reject", code: "invalid_record" });
  });

  it("DA-26: more than 1 MiB or too deep is refused before anything is queued", () => {
    expect(faultsOf("executions", { ...envelope("e-1"), big: "x".repeat(1_048_577) })).toEqual(["."]);
    const deep = JSON.stringify(envelope("e-1")).replace("}", `,"deep":${"[".repeat(300)}${"]".repeat(300)}}`);
    expect(faultsOf("executions", deep)).toEqual(["."]);
  });

  it("is judged the same way by the topic's schema (EV-19)", () => {
    const { validate } = recordSchema(kindOf("effectiveness"))["~standard"];
    expect(validate(envelope("e-1", "effectiveness"))).not.toHaveProperty("issues");
    expect(validate({ ...envelope("e-1"), data: {} })).toMatchObject({ issues: [{ path: ["data", "score"] }] });
  });
});

describe("errors", () => {
  it("DA-25: are one line of at most 256 characters, without passwords, tokens or SQL", () => {
    const raw = `connect postgres://admin:hunter2secret@db:5432/x failed\nauthorization: Bearer abc.def.ghi password=s3cr3t! ${"x".repeat(500)}`;
    const safe = redact(raw);
    expect([...safe].length).toBeLessThanOrEqual(256);
    expect(safe).not.toMatch(/hunter2secret|abc\.def|s3cr3t|\n/);
    const thrown = Object.assign(new Error('insert into "makegood".audit_event … violates check (payload = secret)'), {
      code: "23514",
    });
    expect(outcomeOfWrite(thrown)).toEqual({
      kind: "reject",
      code: "sql_23514",
      error: "the audit database refuses the write (SQLSTATE 23514)",
    });
  });

  it("DA-24: a constraint violation is final, an outage waits without spending attempts, the rest is an ordinary failure", () => {
    const sql = (code: string) => outcomeOfWrite(Object.assign(new Error("x"), { code }));
    for (const code of ["23505", "23514", "22001", "22P02"]) expect(sql(code).kind, code).toBe("reject");
    for (const code of ["42501", "28P01"]) expect(sql(code), code).toMatchObject({ kind: "retry", outage: true, alert: true });
    expect(sql("XX000")).toEqual({ kind: "retry", code: "sql_XX000", error: expect.any(String) });
    expect(outcomeOfWrite(new Error("boom"))).toMatchObject({ kind: "retry", code: "write_failed" });
    const ours = (code: ConstructorParameters<typeof MakegoodError>[0]) => outcomeOfWrite(new MakegoodError(code, "x"));
    for (const code of ["store_unavailable", "outcome_unknown", "retry_transaction", "schema_outdated", "store_full"] as const)
      expect(ours(code), code).toMatchObject({ kind: "retry", outage: true });
    expect(ours("invalid_payload").kind).toBe("reject");
  });

  it("EV-23: refused credentials and wrong addresses are about the service, never about the record", () => {
    const service = createService();
    // N15: what is not there or moved is a wrong address for settlement and audit alike (isAddressFault).
    for (const status of [301, 308, 401, 403, 404, 405, 410, 421, 429, 502, 503, 504, 507]) {
      const outcome = service.withOutage("e", { kind: "retry", code: `http_${status}`, error: "x" });
      expect(outcome, String(status)).toMatchObject({ kind: "retry", outage: true });
    }
    for (const code of ["http_301", "http_401", "http_404"])
      expect(service.withOutage("e", { kind: "retry", code, error: "x" }), code).toMatchObject({ alert: true });
    const unserved = { kind: "unserved", code: "address_refused", error: "x" } as const;
    expect(service.withOutage("e", unserved)).toEqual(unserved);
    expect(service.withOutage("e", { kind: "retry", code: "http_500", error: "x" })).not.toHaveProperty("outage");
    expect(service.withOutage("e", { kind: "reject", code: "http_400", error: "x" })).toMatchObject({ kind: "reject" });
  });

  it("DA-28: silence to one record counts, silence to five different ones is an outage", () => {
    const service = createService();
    const silent = (id: string) => service.withOutage(id, { kind: "unknown", code: "timeout", error: "x" });
    for (let i = 0; i < 10; i++) expect(silent("poison")).not.toHaveProperty("outage");
    for (const id of ["a", "b", "c"]) expect(silent(id)).not.toHaveProperty("outage");
    expect(silent("d")).toMatchObject({ outage: true });
    service.withOutage("e", { kind: "delivered" });
    expect(silent("d")).not.toHaveProperty("outage");
    // Silence beside a refused connection is the same outage, unless one record alone met both: it may be what kills the service.
    const refused = (id: string) => service.withOutage(id, { kind: "retry", code: "connection_refused", error: "x" });
    refused("d");
    expect(silent("d")).not.toHaveProperty("outage");
    expect(silent("f")).toMatchObject({ outage: true });
    service.withOutage("e", { kind: "delivered" });
    expect(silent("f")).not.toHaveProperty("outage");
  });
});
