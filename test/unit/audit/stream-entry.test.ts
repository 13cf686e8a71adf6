/**
 * Entries of the seed's stream become messages of the audit topics, or of the quarantine; none is thrown away.
 */
import { expect, it } from "vitest";
import { readAuditEntry } from "../../../src/presets/seed-streams.ts";
import { envelope } from "../../audit/records.ts";

const entry = (fields: Record<string, string>) => ({ id: "1767225600123-4", fields });

it("a whole record keeps its text and its event id, under any name of its type", () => {
  const text = JSON.stringify(envelope("e-1", "ai-decisions"));
  const message = readAuditEntry("audit-dlq", entry({ audit_type: "ai_analysis", audit_data: text, retry_count: "3" }));
  expect(message).toEqual({ topic: "audit/ai-decisions", payloadText: text, key: "e-1" });
});

it("DA-14, DA-23: a record of the seed gets an event id and a time in milliseconds, the same at each reading", () => {
  const data = '{"id":"an-1", "fingerprint":"f","confidence":0.10}';
  const read = () =>
    readAuditEntry("audit-dlq", entry({ audit_type: "ai_analysis", audit_data: data, created_at: "1767225600" }));
  expect(read()).toEqual(read());
  expect(read()).toMatchObject({ topic: "audit/ai-decisions", key: "audit-dlq/1767225600123-4" });
  expect(read().payloadText).toContain(`"data":${data}`);
  expect(JSON.parse(read().payloadText)).toMatchObject({ correlation_id: "an-1", occurred_at: "2026-01-01T00:00:00.123Z" });
});

it("DA-13: what cannot be read goes to the quarantine with everything it held", () => {
  for (const [audit_type, audit_data] of [
    ["nobody", "{}"],
    ["executions", "{"],
    ["executions", "[]"],
    ["executions", '{"no":"workflow"}'],
    ["executions", JSON.stringify({ ...envelope("e-1"), data: {} })],
  ] as const) {
    const message = readAuditEntry("audit-dlq", entry({ audit_type, audit_data }));
    expect(message.topic).toBe("audit/quarantine");
    expect(JSON.parse(message.payloadText)).toMatchObject({ audit_type, record: audit_data });
  }
  expect(readAuditEntry("audit-dlq", entry({})).topic).toBe("audit/quarantine");
});
