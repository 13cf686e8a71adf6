/** DX-8 as a property of the book: whatever events say, no metric has more series than its labels may have values. */
import { expect, it } from "vitest";
import { createEvents, type MakegoodEvent } from "../../../src/observe/events.ts";
import { createMetrics } from "../../../src/observe/metrics.ts";
import { TOPICS_MAX, VALUES_MAX } from "../../../src/observe/series.ts";

const NONE = { messages: null, breakers: null, ageMs: null, up: null };

/** Everything that a label is made of, different each time. */
function made(n: number): MakegoodEvent[] {
  const name = `made-up-${n}`;
  const topic = `made/up${n}`;
  const attempt = { type: "attempt", topic, id: name, attempt: 1, ms: 1, code: name, error: null, alert: false } as const;
  const ingest = { type: "recovery_ingest", count: 1, queued: 0, ms: 1, detection: null } as const;
  return [
    { type: "accepted", topic, inserted: 1, duplicate: 1 },
    { ...attempt, outcome: name as "retry", status: "dead" },
    { ...attempt, topic: `audit/x${"y".repeat(n % 50)}`, outcome: "reject", status: "dead" },
    { ...attempt, topic: `recovery/${name}`, outcome: "retry", status: "pending" },
    { type: "unserved", topic, id: name, code: name, error: name, restMs: null },
    { type: "breaker", topic, state: "open", reason: name },
    { type: "intervened", id: name, action: name, actor: name, reason: name },
    { type: "audit", auditType: name, result: "failed", code: name },
    { ...ingest, source: name as "api", status: name as "error" },
    { type: "job", name, result: "done", ms: 1, counts: { [name]: 1 }, error: name },
    { type: "lock", name, what: "released", ms: 1 },
    { type: "archived", class: name as "dead", count: 1, bytes: 1 },
    { type: "retired", class: name as "dead", count: 1 },
    { type: "direct", topic, id: name, outcome: name, tries: 1, ms: 1, code: name, error: name },
    { type: "handed_down", topic, id: name, rung: "none", survives: name, code: name },
    { type: "rung_failed", rung: name, error: name },
    { type: "store_error", during: name, error: name, consecutive: 1 },
    { type: "store_lost_data", store: name, what: name },
    { type: "durability", store: name, survives: name, before: name },
    { type: "journal_note", what: name, file: name },
  ];
}

it("DX-8: labels are bounded: 1,500 made-up values of everything, and no id, key or error is a label", async () => {
  const events = createEvents();
  const metrics = createMetrics({ events, version: "0", levels: async () => NONE });
  for (let n = 0; n < 1_500; n++) for (const event of made(n)) events.emit(event);
  const text = await metrics.text();
  metrics.close();
  const series = new Map<string, number>();
  const values = new Map<string, Set<string>>();
  for (const line of text.split("\n")) {
    const [, name, labels = ""] = /^(\w+?)(?:_bucket|_sum|_count)?\{(.*)\} /.exec(line) ?? [];
    if (!name || line.includes("_bucket{") || line.includes("_sum{")) continue;
    series.set(name, (series.get(name) ?? 0) + 1);
    for (const [, label, value] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
      const at = `${name} ${label}`;
      values.set(at, (values.get(at) ?? new Set()).add(value as string));
    }
  }
  // All series share the topics that have a name: here a third of them each of accepted, audit's and recovery's.
  expect(series.get("makegood_accepted_total")).toBeGreaterThan(VALUES_MAX + 1);
  expect(series.get("makegood_job_runs_total")).toBe(VALUES_MAX + 1);
  expect(text).toContain('makegood_job_runs_total{job_name="other",result="done"} 1400');
  for (const [at, found] of values)
    expect([at, found.size <= (at.endsWith(" topic") ? TOPICS_MAX : VALUES_MAX) + 1]).toEqual([at, true]);
  expect([...values.keys()].filter((at) => / (id|key|error|tenant|actor|reason|url)$/.test(at))).toEqual([]);
});
