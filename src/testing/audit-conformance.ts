/**
 * The audit conformance suite: what every engine of the audit seam must do. It knows no test runner; with vitest a file is two
 * lines: `for (const c of auditConformance(h)) it(c.name, c.run)`.
 */
import assert from "node:assert/strict";
import type { AuditRecord, AuditStore } from "../store/audit.ts";
import type { Case } from "./store-conformance/harness.ts";

export interface AuditHarness {
  readonly name: string;
  /** An empty one that shares nothing with any other; `close` is called by the case. */
  open(): Promise<OpenAudit>;
}

export interface OpenAudit {
  readonly audit: AuditStore;
  /** The same data as another process sees it; absent where there is only one process. */
  another?(): Promise<AuditStore>;
  close(): Promise<void>;
}

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2031, 0, 15, 12);

function record(eventId: string, fields: Partial<AuditRecord> = {}): AuditRecord {
  return {
    eventId,
    auditType: "executions",
    correlationId: "c-1",
    occurredAt: new Date("2030-12-31T23:59:59.123Z"),
    actor: "workflow",
    resource: "pod/a",
    outcome: "success",
    payload: `{"event_id":${JSON.stringify(eventId)}}`,
    ...fields,
  };
}

const at = (days: number) => ({ now: new Date(START_MS + days * DAY_MS) });

/** Texts that a database or a parser likes to change. */
const TEXTS = [
  '{"n":12345678901234567890,"f":1.10,"e":1E400}',
  '{ "b":1, "a":2 ,"b":3 }',
  '{"nul":"\\u0000","emoji":"😀","esc":"\\/","line":"\u2028"}',
  `{"long":"${"x".repeat(100_000)}"}`,
];

const cases: Record<string, (audit: AuditStore, open: OpenAudit) => Promise<void>> = {
  "stores a record once; the same text again is a duplicate, another text a conflict": async (audit) => {
    const first = await audit.write(record("e-1"));
    assert.equal(first.kind, "stored");
    assert.deepEqual(await audit.write(record("e-1")), { kind: "duplicate", sequence: first.sequence });
    const other = record("e-1", { payload: '{"event_id":"e-1","changed":true}', outcome: "failure" });
    assert.deepEqual(await audit.write(other), { kind: "conflict", sequence: first.sequence });
    const kept = await audit.get("e-1");
    assert.deepEqual([kept?.payload, kept?.outcome], [record("e-1").payload, "success"]);
  },

  "gives back every field and the exact text": async (audit) => {
    for (const [i, payload] of TEXTS.entries()) {
      const written = record(`t-${i}`, { payload, actor: "Ünï", resource: "ns/pod 'x'", correlationId: `c-${i}` });
      const { sequence } = await audit.write(written, at(0));
      assert.deepEqual(await audit.get(`t-${i}`), { ...written, sequence, recordedAt: at(0).now });
    }
    assert.equal(await audit.get("nobody"), null);
  },

  "an event id is unique over types and months": async (audit) => {
    await audit.write(record("e-1"), at(0));
    assert.equal((await audit.write(record("e-1"), at(70))).kind, "duplicate");
    assert.equal((await audit.write(record("e-1", { auditType: "notifications", payload: "{}" }), at(70))).kind, "conflict");
  },

  "many at once with one event id: one is stored, the others are told": async (audit, open) => {
    const second = (await open.another?.()) ?? audit;
    const writes = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? audit : second).write(record("e-1")));
    const results = await Promise.all(writes);
    assert.equal(results.filter(({ kind }) => kind === "stored").length, 1);
    assert.equal(results.filter(({ kind }) => kind === "duplicate").length, 39);
    assert.equal(new Set(results.map(({ sequence }) => sequence)).size, 1);
    assert.equal((await audit.list({ limit: 100 })).length, 1);
  },

  "sequences rise, within one millisecond too, and events keep theirs": async (audit) => {
    for (let i = 0; i < 20; i++) await audit.write(record(`e-${i}`), at(0));
    const listed = await audit.list({ limit: 100 });
    assert.deepEqual(
      listed.map(({ eventId }) => eventId),
      Array.from({ length: 20 }, (_, i) => `e-${i}`),
    );
    for (const [i, { sequence }] of listed.entries()) if (i > 0) assert.ok(BigInt(sequence) > BigInt(listed[i - 1]!.sequence));
    assert.equal(listed[0]?.occurredAt.getUTCMilliseconds(), 123);
  },

  "lists by type and correlation, in pages": async (audit) => {
    for (let i = 0; i < 12; i++) {
      await audit.write(
        record(`e-${i}`, { correlationId: `c-${i % 2}`, auditType: i % 3 === 0 ? "executions" : "effectiveness" }),
      );
    }
    assert.equal((await audit.list({ correlationId: "c-1", limit: 100 })).length, 6);
    assert.equal((await audit.list({ correlationId: "c-1", auditType: "executions", limit: 100 })).length, 2);
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await audit.list({ limit: 5, after });
      if (page.length === 0) break;
      seen.push(...page.map(({ eventId }) => eventId));
      after = page.at(-1)?.sequence;
    }
    assert.equal(new Set(seen).size, 12);
    assert.equal(seen.length, 12);
  },

  "no policy means keep": async (audit) => {
    await audit.write(record("e-1"), at(0));
    assert.equal(await audit.prune({ keptMs: null, ...at(365 * 100) }), 0);
    assert.notEqual(await audit.get("e-1"), null);
  },

  "a policy removes whole months past their time, and nothing else": async (audit) => {
    await audit.write(record("old"), at(0));
    await audit.write(record("late-in-the-month"), at(16));
    await audit.write(record("next-month"), at(17));
    const keptMs = 365 * DAY_MS;
    assert.equal(await audit.prune({ keptMs, ...at(366) }), 0, "January is not over for a year yet");
    assert.equal(await audit.prune({ keptMs, ...at(16 + 365 + 1) }), 2);
    assert.equal(await audit.get("old"), null);
    assert.equal(await audit.get("late-in-the-month"), null);
    assert.notEqual(await audit.get("next-month"), null);
    assert.equal(await audit.prune({ keptMs, ...at(16 + 365 + 1) }), 0);
    assert.equal((await audit.write(record("old"), at(400))).kind, "stored", "what is gone may come again");
  },

  "prune at the same moment from two processes removes each record once": async (audit, open) => {
    const second = (await open.another?.()) ?? audit;
    await Promise.all(Array.from({ length: 30 }, (_, i) => audit.write(record(`e-${i}`), at(0))));
    const keptMs = DAY_MS;
    const both = await Promise.allSettled([audit.prune({ keptMs, ...at(60) }), second.prune({ keptMs, ...at(60) })]);
    // One of the two may fail because the other did its work; no record may count twice, and all of them are gone.
    assert.ok(both.some(({ status }) => status === "fulfilled"));
    const rest = await audit.prune({ keptMs, ...at(60) });
    const counted = both.reduce((sum, one) => sum + (one.status === "fulfilled" ? one.value : 0), rest);
    assert.ok(counted <= 30, `${counted} of 30 records were counted`);
    assert.deepEqual(await audit.list({ limit: 100 }), []);
    for (let i = 0; i < 30; i++) assert.equal((await audit.write(record(`e-${i}`), at(60))).kind, "stored");
  },
};

/** The cases an engine must pass; each opens a fresh one and closes it again. */
export function auditConformance(harness: AuditHarness): Case[] {
  return Object.entries(cases).map(([name, run]) => ({
    group: "audit",
    name,
    async run() {
      const open = await harness.open();
      try {
        await run(open.audit, open);
      } finally {
        await open.close();
      }
    },
  }));
}
