/**
 * The audit conformance suite: what every engine of the audit seam must do. It knows no test runner; with vitest a file is two
 * lines: `for (const c of auditConformance(h)) it(c.name, c.run)`.
 */
import assert from "node:assert/strict";
import type { AuditFilter, AuditRecord, AuditStore, StoredAudit } from "../store/audit.ts";
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

const listed = async (audit: AuditStore, filter: Partial<AuditFilter> = {}): Promise<readonly StoredAudit[]> =>
  (await audit.list({ limit: 100, ...filter })).records;

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
      const { position: _, ...found } = (await audit.get(`t-${i}`)) ?? { position: null };
      assert.deepEqual(found, { ...written, sequence, recordedAt: at(0).now });
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
    assert.equal((await listed(audit)).length, 1);
  },

  "sequences rise, within one millisecond too, and events keep theirs": async (audit) => {
    for (let i = 0; i < 20; i++) await audit.write(record(`e-${i}`), at(0));
    const all = await listed(audit);
    assert.deepEqual(
      all.map(({ eventId }) => eventId),
      Array.from({ length: 20 }, (_, i) => `e-${i}`),
    );
    for (const [i, { sequence }] of all.entries()) if (i > 0) assert.ok(BigInt(sequence) > BigInt(all[i - 1]!.sequence));
    assert.equal(all[0]?.occurredAt.getUTCMilliseconds(), 123);
  },

  "lists by type and correlation, in pages": async (audit) => {
    for (let i = 0; i < 12; i++) {
      await audit.write(
        record(`e-${i}`, { correlationId: `c-${i % 2}`, auditType: i % 3 === 0 ? "executions" : "effectiveness" }),
      );
    }
    assert.equal((await listed(audit, { correlationId: "c-1" })).length, 6);
    assert.equal((await listed(audit, { correlationId: "c-1", auditType: "executions" })).length, 2);
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const { records, next } = await audit.list({ limit: 5, after });
      seen.push(...records.map(({ eventId }) => eventId));
      if (next === null) break;
      after = next;
    }
    assert.equal(new Set(seen).size, 12);
    assert.equal(seen.length, 12);
  },

  "lists by actor, resource, outcome and the time that it happened": async (audit) => {
    for (let i = 0; i < 6; i++) {
      const fields = { actor: `a-${i % 2}`, resource: `r-${i % 3}`, outcome: i === 0 ? "failure" : "success" };
      await audit.write(record(`e-${i}`, { ...fields, occurredAt: new Date(START_MS + i * DAY_MS) }));
    }
    const ids = async (filter: Partial<AuditFilter>) => (await listed(audit, filter)).map(({ eventId }) => eventId);
    assert.deepEqual(await ids({ actor: "a-1" }), ["e-1", "e-3", "e-5"]);
    assert.deepEqual(await ids({ actor: "a-1", resource: "r-0" }), ["e-3"]);
    assert.deepEqual(await ids({ outcome: "failure" }), ["e-0"]);
    assert.deepEqual(await ids({ since: at(2).now, until: at(4).now }), ["e-2", "e-3"]);
    assert.deepEqual(await ids({ actor: "nobody" }), []);
  },

  "a record that was just written is listed at once, and one goes on from where the last page ended": async (audit) => {
    await audit.write(record("e-1"));
    const [first] = await listed(audit);
    assert.equal((await audit.get("e-1"))?.position, first?.position);
    await audit.write(record("e-2"));
    const after = first?.position ?? undefined;
    assert.deepEqual(
      (await listed(audit, { after })).map(({ eventId }) => eventId),
      ["e-2"],
    );
  },

  "a hold keeps its record past retention, and its month with it, until it is released": async (audit) => {
    await audit.write(record("held"), at(0));
    await audit.write(record("beside"), at(1));
    await audit.write(record("other-month"), at(20));
    const hold = await audit.hold({ eventId: "held" }, { actor: "ann", reason: "case 7" }, at(30));
    assert.deepEqual([hold?.eventId, hold?.placedBy, hold?.reason, hold?.placedAt], ["held", "ann", "case 7", at(30).now]);
    assert.equal(await audit.prune({ keptMs: DAY_MS, ...at(100) }), 1);
    assert.deepEqual(
      (await listed(audit)).map(({ eventId }) => eventId),
      ["held", "beside"],
    );
    const by = { actor: "bob", reason: "closed" };
    const released = await audit.release(hold?.id ?? "", by, at(101));
    assert.deepEqual([released?.releasedBy, released?.releaseReason], ["bob", "closed"]);
    assert.equal(await audit.release(hold?.id ?? "", by), null, "it was released before");
    assert.equal(await audit.prune({ keptMs: DAY_MS, ...at(102) }), 2);
  },

  "a hold on a correlation id keeps what belongs to it, also what comes later": async (audit) => {
    const hold = await audit.hold({ correlationId: "matter-7" }, { actor: "ann", reason: "case 7" });
    await audit.write(record("e-1", { correlationId: "matter-7" }), at(0));
    await audit.write(record("e-2", { correlationId: "other" }), at(40));
    assert.equal(await audit.prune({ keptMs: DAY_MS, ...at(100) }), 1);
    assert.notEqual(await audit.get("e-1"), null);
    assert.deepEqual(
      (await audit.holds({ active: true, limit: 10 })).map(({ id }) => id),
      [hold?.id],
    );
    await audit.release(hold?.id ?? "", { actor: "ann", reason: "over" });
    assert.deepEqual(await audit.holds({ active: true, limit: 10 }), []);
    assert.equal((await audit.holds({ active: false, limit: 10 })).length, 1, "its line stays");
  },

  "what is not there cannot be held": async (audit) => {
    assert.equal(await audit.hold({ eventId: "nobody" }, { actor: "ann", reason: "x" }), null);
    assert.equal(await audit.release("1", { actor: "ann", reason: "x" }), null);
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
    assert.deepEqual(await listed(audit), []);
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
