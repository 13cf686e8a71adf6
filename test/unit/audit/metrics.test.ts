/**
 * The numbers of the audit path: every declared metric appears, under names that the alerts of the seed can be written with.
 */
import { expect, it } from "vitest";
import { createEvents } from "../../../src/observe/events.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { createIds } from "../../../src/platform/ids.ts";

const WEEK_MS = 7 * 86_400_000;

it("DA-7, DA-19, CON-18: depth falls, waits of a week have a bucket, and what the alerts need is declared and labelled", async () => {
  const events = createEvents();
  let pending = 3;
  const metrics = createMetrics({
    events,
    version: "test",
    levels: async () => ({
      messages: [
        { topic: "audit/executions", status: "pending", resolution: null, count: pending, oldestMs: 1 },
        { topic: "audit/executions", status: "processing", resolution: null, count: 1, oldestMs: 1 },
        { topic: "audit/quarantine", status: "dead", resolution: "open", count: 2, oldestMs: 1 },
        { topic: "audit/quarantine", status: "dead", resolution: "resolved", count: 5, oldestMs: 1 },
        { topic: "billing/finalize", status: "pending", resolution: null, count: 50, oldestMs: 1 },
      ],
      breakers: [],
      ageMs: 0,
      up: true,
    }),
  });
  for (const result of ["success", "fallback", "validation_error", "failed"] as const)
    events.emit({ type: "audit", auditType: "executions", result, code: null });
  const attempt = { type: "attempt", outcome: "delivered", ms: 1, code: null, error: null, alert: false } as const;
  const sixDays = createIds({
    wallMs: () => Date.now() - WEEK_MS + 86_400_000,
    monotonicMs: () => 0,
    after: () => ({ cancel() {} }),
  });
  events.emit({ ...attempt, topic: "audit/executions", id: sixDays(), attempt: 1, status: "delivered" });
  events.emit({ ...attempt, topic: "billing/finalize", id: sixDays(), attempt: 1, status: "delivered" });
  for (const code of ["invalid_record", "sql_23514", "select secret from x", null])
    events.emit({ ...attempt, outcome: "reject", topic: "audit/executions", id: sixDays(), attempt: 1, status: "dead", code });

  const text = await metrics.text();
  const has = (line: string) => expect(text).toContain(line);
  for (const result of ["success", "fallback", "validation_error", "failed"])
    has(`makegood_audit_write_attempts_total{audit_type="executions",result="${result}"} 1`);
  has('makegood_audit_write_failures_total{audit_type="executions"} 3');
  has('makegood_audit_retry_duration_seconds_bucket{le="172800",audit_type="executions"} 0');
  has('makegood_audit_retry_duration_seconds_bucket{le="604800",audit_type="executions"} 1');
  for (const reason of ["invalid_record", "database_refused", "other", "unknown"])
    has(`makegood_audit_dead_letter_total{audit_type="executions",failure_reason="${reason}"} 1`);
  expect(text).not.toContain("secret");
  has("makegood_audit_pending 4");
  has("makegood_audit_dead_letters 2");
  pending = 0;
  expect(await metrics.text()).toContain("makegood_audit_pending 1");
  metrics.close();
});
