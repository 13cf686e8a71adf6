/**
 * EV-24: tamper evidence over audit and provenance on a real PostgreSQL: what a superuser changes with the triggers off is found, and by its
 * name; what leaves the proper way is not called broken.
 */
import { readFile, writeFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { parseKeys } from "../../src/evidence/notes.ts";
import { readCopies } from "../../src/evidence/outside.ts";
import { checkProof } from "../../src/evidence/proof.ts";
import { USUAL_TURN } from "../../src/platform/job.ts";
import { beginTransaction, openStore } from "../support/postgres.ts";
import { kinds, newKeys, openEvidence, verified } from "./support.ts";

type Opened = Awaited<ReturnType<typeof openEvidence>>;
let open: Opened | undefined;
afterEach(async () => {
  await open?.close();
  open = undefined;
});

/** Three blocks: audit, provenance, audit. */
async function sealed(): Promise<Opened> {
  const opened = await openEvidence();
  open = opened;
  await opened.write(3);
  await opened.evidence.seal();
  await opened.provenance(4);
  await opened.evidence.seal();
  await opened.write(2);
  await opened.evidence.seal();
  return opened;
}

describe("EV-24: a chain that nobody touched", () => {
  it("is intact, signed and anchored, and every row is in it once", async () => {
    const { evidence, heard } = await sealed();
    const report = await verified(evidence);
    expect(report).toMatchObject({ findings: [], blocks: 3, intact: 9, broken: 0, unsealed: 0 });
    expect(report.ranges).toEqual([{ from: "1", to: "3", state: "intact", anchored: "yes", signed: "yes" }]);
    expect(heard.filter(({ type }) => type === "store_error")).toEqual([]);
  });

  it("makes no block where nothing is new, and says what is not sealed yet", async () => {
    const { evidence, write } = await sealed();
    expect(await evidence.seal()).toBe(0);
    await write(2);
    expect(await verified(evidence)).toMatchObject({ findings: [], unsealed: 2 });
  });

  it("the job tells of each block and whether it is outside, too", async () => {
    const { evidence, write, heard, with: with_ } = await sealed();
    await write(2);
    await evidence.job.run(new AbortController().signal, USUAL_TURN);
    await write(1);
    await with_({ outside: undefined }).job.run(new AbortController().signal, USUAL_TURN);
    expect(heard.filter(({ type }) => type === "evidence")).toEqual([
      { type: "evidence", block: "4", rows: 2, anchored: true },
      { type: "evidence", block: "5", rows: 1, anchored: false },
    ]);
    expect((await verified(evidence)).ranges.map(({ from, to, anchored }) => [from, to, anchored])).toEqual([
      ["1", "4", "yes"],
      ["5", "5", "no"],
    ]);
  });

  it("1,001 rows are one block, and 50,000 of before are taken in slices that are bounded", async () => {
    open = await openEvidence();
    await open.provenance(1_001);
    expect(await open.evidence.seal()).toBe(1);
    await open.provenance(50_000);
    expect(await open.evidence.seal()).toBe(10);
    const report = await verified(open.evidence);
    expect(report).toMatchObject({ findings: [], blocks: 11, intact: 51_001 });
  });

  it("rows of before the migration are numbered in their turn, with a salt that is kept for them", async () => {
    open = await openEvidence();
    await open.tamper(
      `insert into provenance (message_id, actor, action, salt) select gen_random_uuid(), 'old', 'replay', null from generate_series(1, 1200)`,
    );
    await open.tamper(`update evidence_source set until_id = 1200 where source = 2`);
    await open.provenance(3);
    await open.evidence.seal();
    expect(await verified(open.evidence)).toMatchObject({ findings: [], intact: 1_203 });
    const [row] = await open.tamper(`select count(salt)::int as n from evidence_leaf`);
    expect(row?.n).toBe(1_200);
  });
});

describe("EV-24: what a superuser does with the triggers off is found", () => {
  const cases: Record<string, { sql: string; finds: string[]; names?: object }> = {
    "a row changed": {
      sql: `update audit_record set outcome = 'success!' where event_id = 'e-2'`,
      finds: ["row_changed"],
      names: { height: "1", source: "audit", id: "2" },
    },
    "a salt changed": { sql: `update provenance set salt = gen_random_uuid() where id = 2`, finds: ["row_changed"] },
    "a row deleted": {
      sql: `delete from provenance where id = 3`,
      finds: ["row_deleted"],
      names: { height: "2", source: "provenance", id: "3" },
    },
    "a row inserted into the past": {
      sql: `insert into audit_record (seq, recorded_at, event_id, audit_type, correlation_id, occurred_at, actor, resource, outcome, payload)
        select 4711, recorded_at, 'forged', audit_type, correlation_id, occurred_at, actor, resource, outcome, payload from audit_record limit 1`,
      finds: ["row_inserted"],
      names: { source: "audit", id: "4711" },
    },
    "a row and its leaf changed together": {
      sql: `delete from provenance where id = 3; delete from evidence_leaf where source = 2 and id = 3`,
      finds: ["leaf_changed"],
      names: { height: "2" },
    },
    "a block's root edited": {
      sql: `update evidence_block set root = sha256('x') where height = 2`,
      finds: ["block_edited", "leaf_changed"],
    },
    "a note edited": {
      sql: `update evidence_block set note = replace(note, 'positions 4-', 'positions 5-') where height = 2`,
      finds: ["block_edited", "copy_differs", "signature_bad"],
    },
    "a block in the middle deleted": { sql: `delete from evidence_block where height = 2`, finds: ["block_missing"] },
    "the tail cut": { sql: `delete from evidence_block where height = 3`, finds: ["tail_cut"], names: { height: "3" } },
    "the whole chain deleted": {
      sql: `delete from evidence_block; delete from evidence_leaf; delete from evidence_anchor; update evidence_state set next_pos = 1`,
      finds: ["chain_deleted", "row_inserted"],
    },
    "a signature taken away": {
      sql: `update evidence_block set note = split_part(note, E'\\n\\n', 1) || E'\\n' where height = 2`,
      finds: ["unsigned"],
      names: { height: "2" },
    },
    "a departure forged": {
      sql: `insert into evidence_departure (kind, source, first_pos, last_pos, count, root, at, actor, reason, note)
          select 'retired', 2, pos, pos, 1, leaf, now(), 'x', 'x', 'x' from evidence_leaf where source = 2 and id = 3;
        update evidence_leaf set gone = 1 where source = 2 and id = 3; delete from provenance where id = 3`,
      finds: ["departure_wrong", "row_deleted"],
    },
  };
  for (const [name, { sql, finds, names }] of Object.entries(cases)) {
    it(name, async () => {
      const { evidence, tamper } = await sealed();
      await tamper(sql);
      const report = await verified(evidence);
      expect(kinds(report)).toEqual(finds);
      if (names) expect(report.findings.some((one) => Object.entries(names).every(([k, v]) => one[k as "id"] === v))).toBe(true);
      // A part that nobody touched stays intact in the report.
      if (!/chain|whole/.test(name)) expect(report.intact).toBeGreaterThan(0);
    });
  }

  it("a chain that was made anew under another key by one who holds the database", async () => {
    const { evidence, tamper, with: with_ } = await sealed();
    await tamper(`delete from evidence_block; update provenance set actor = 'bob'`);
    await tamper(
      `delete from evidence_leaf; insert into evidence_pending select 2, id, at from provenance; update evidence_state set next_pos = 1`,
    );
    await with_({ keys: newKeys(), outside: undefined }).seal();
    const found = kinds(await verified(evidence));
    expect(found).toContain("signature_unknown");
    expect(found).toContain("copy_differs");
  });

  it("without a copy outside a cut tail stays unseen, and the report says that it cannot know", async () => {
    const { tamper, with: with_ } = await sealed();
    await tamper(`delete from evidence_block where height = 3`);
    const report = await verified(with_({ outside: undefined }));
    expect([report.findings, report.ranges[0]?.anchored]).toEqual([[], "unknown"]);
  });
});

describe("EV-24: commit order", () => {
  it("an open transaction with lower ids keeps nobody waiting, and its rows are sealed once it commits", async () => {
    open = await openEvidence();
    const { schema, evidence, write } = open;
    const long = await beginTransaction();
    await long.tx.query(
      `insert into "${schema}".provenance (message_id, actor, action) values (gen_random_uuid(), 'slow', 'replay')`,
    );
    await open.provenance(5);
    await write(5);
    await evidence.seal();
    expect(await verified(evidence)).toMatchObject({ intact: 10, unsealed: 0, findings: [] });
    await long.commit();
    await evidence.seal();
    expect(await verified(evidence)).toMatchObject({ intact: 11, unsealed: 0, findings: [] });
    const [first] = await open.tamper(`select pos::int from evidence_leaf where source = 2 and id = 1`);
    expect(first?.pos).toBe(11);
  });

  it("two that seal at once make one chain", async () => {
    open = await openEvidence();
    const other = await openStore({ schema: open.schema });
    const { createEvidence } = await import("../../src/evidence/evidence.ts");
    const second = createEvidence(other.home, open.events, { keys: open.keys });
    for (let round = 0; round < 5; round++) {
      await open.provenance(20);
      await Promise.all([open.evidence.seal(), second.seal(), open.evidence.seal()]);
    }
    await open.evidence.seal();
    await other.close();
    expect(await verified(open.evidence)).toMatchObject({ findings: [], intact: 100 });
  });

  it("a clock that jumps back between blocks does no harm: the order is not the clock's", async () => {
    const { audit, evidence } = await sealed();
    const { record } = await import("../audit/records.ts");
    await audit.write(record("from-the-past"), { now: new Date("2020-01-01T00:00:00Z") });
    await audit.write(record("from-the-future"), { now: new Date("2040-01-01T00:00:00Z") });
    await evidence.seal();
    expect(await verified(evidence)).toMatchObject({ findings: [], intact: 11 });
  });
});

describe("EV-24: the copy outside", () => {
  it("what a crash left between the block and the copy is written by the next run", async () => {
    const { with: with_, write, copy, evidence } = await sealed();
    await write(1);
    // Killed after the block: nothing was written outside.
    await with_({ outside: undefined }).seal();
    expect((await verified(evidence)).ranges.at(-1)).toMatchObject({ from: "4", anchored: "no" });
    await evidence.seal();
    expect((await verified(evidence)).ranges.at(-1)).toMatchObject({ to: "4", anchored: "yes" });
    // Killed after the copy and before it was noted: the line is there twice, and means the same.
    await open?.tamper("delete from evidence_anchor where number = 4");
    await evidence.seal();
    const numbers: string[] = [];
    for await (const { number } of readCopies(copy)) numbers.push(number);
    expect(numbers).toEqual(["1", "2", "3", "4", "4"]);
    // Killed in the middle of a line.
    await writeFile(copy, (await readFile(copy, "utf8")).slice(0, -20));
    expect(kinds(await verified(evidence))).toEqual([]);
  });

  it("a copy that fails is told, the block stands, and it is unanchored until the copy works", async () => {
    const { with: with_, write, heard } = await sealed();
    await write(1);
    const outside = { place: "away", read: null, write: () => Promise.reject(new Error("no such disk")) };
    await with_({ outside }).job.run(new AbortController().signal, USUAL_TURN);
    expect(heard.find(({ type }) => type === "evidence")).toMatchObject({ block: "4", anchored: false });
    expect(heard.find(({ type }) => type === "store_error")).toMatchObject({ error: "no such disk" });
  });
});

describe("EV-24: keys and proofs", () => {
  it("a new key signs beside the old one, and old blocks stay trusted by the key that is only listed", async () => {
    const { with: with_, keys, write } = await sealed();
    const fresh = newKeys();
    await write(1);
    await with_({ keys: [...fresh, ...keys] }).seal();
    expect(kinds(await verified(with_({ keys })))).toEqual([]);
    await write(1);
    const listed = [...fresh, ...parseKeys(keys[0]!.verifier)];
    await with_({ keys: listed }).seal();
    expect((await verified(with_({ keys: listed }))).ranges).toMatchObject([{ to: "5", state: "intact", signed: "yes" }]);
    expect(kinds(await verified(with_({ keys: fresh })))).toEqual(["signature_unknown"]);
  });

  it("a proof of one record is checked without the store; a changed word, path or key is refused", async () => {
    const { evidence, keys } = await sealed();
    for (const [source, id] of [
      ["audit", "2"],
      ["provenance", "4"],
      ["provenance", "1"],
    ] as const) {
      const proof = JSON.parse(JSON.stringify(await evidence.prove(source, id)));
      expect(checkProof(proof, keys)).toMatchObject({ ok: true, whole: true, signed: "trusted" });
      expect(checkProof(proof, [])).toMatchObject({ ok: true, signed: "unknown" });
      expect(checkProof(proof, newKeys())).toMatchObject({ ok: false });
      expect(checkProof({ ...proof, record: { ...proof.record, actor: "eve" } }, keys)).toMatchObject({ ok: false });
      expect(checkProof({ ...proof, position: String(Number(proof.position) + 1) }, keys)).toMatchObject({ ok: false });
      expect(checkProof({ ...proof, note: proof.note.replace("sealed 2", "sealed 1") }, keys)).toMatchObject({ ok: false });
    }
    expect(await evidence.prove("audit", "999")).toBeNull();
    expect(checkProof("nonsense", keys).ok).toBe(false);
  });
});

describe("EV-24: rows leave", () => {
  const why = { kind: "retired", actor: "retention", reason: "90 days" } as const;

  it("the database refuses a delete that no departure goes with", async () => {
    const { home } = await sealed();
    const { s } = home;
    await expect(home.write("delete")(`delete from ${s}.audit_record where seq = 1`)).rejects.toThrow(/append-only/);
    await expect(home.write("delete")(`update ${s}.audit_record set actor = 'x' where seq = 1`)).rejects.toThrow(/append-only/);
    await expect(home.write("delete")(`delete from ${s}.provenance where id = 1`)).rejects.toThrow(/append-only/);
  });

  it("with a signed record of it rows are retired, not broken; what is in no block yet is sealed first", async () => {
    const { evidence, home, write, tamper, keys } = await sealed();
    const { s } = home;
    await write(1);
    const gone = await home.transaction("retire", async ({ run }) => {
      const may = await evidence.depart(run, "audit", ["1", "2", "6", "99"], why);
      await run(`delete from ${s}.audit_record where seq = any ($1::bigint[])`, [may]);
      return may;
    });
    expect(gone).toEqual(["1", "2", "6"]);
    expect(await verified(evidence)).toMatchObject({ findings: [], retired: 3, intact: 7 });
    expect(checkProof(await evidence.prove("audit", "2"), keys)).toMatchObject({ ok: true, whole: false });
    // A record that says less than what is gone does not cover it.
    await tamper("delete from audit_record where seq = 3; update evidence_leaf set gone = 1 where source = 1 and id = 3");
    expect(kinds(await verified(evidence))).toEqual(["departure_wrong", "row_deleted"]);
  });

  it("a departure that was rolled back leaves everything as it was", async () => {
    const { evidence, home } = await sealed();
    const cut = home.transaction("retire", async ({ run }) => {
      await evidence.depart(run, "audit", ["1"], why);
      throw new Error("crash");
    });
    await expect(cut).rejects.toThrow("crash");
    expect(await verified(evidence)).toMatchObject({ findings: [], retired: 0, intact: 9 });
  });
});

describe("EV-24: retention of audit", () => {
  const KEPT = { keptMs: 86_400_000, now: new Date("2031-06-01T00:00:00Z") };

  it("a month that is dropped leaves a signed record in the same transaction: retired, not broken", async () => {
    open = await openEvidence();
    const { audit, evidence, with: with_, tamper, keys } = open;
    const { record } = await import("../audit/records.ts");
    for (let i = 0; i < 4; i++) await audit.write(record(`old-${i}`), { now: new Date(Date.UTC(2031, 0, 10 + i)) });
    await evidence.seal();
    // Not sealed when retention comes: sealed first.
    await audit.write(record("old-late"), { now: new Date("2031-01-31T23:59:59.999Z") });
    await audit.write(record("kept"), { now: new Date("2031-06-01T00:00:00Z") });
    expect(await audit.prune({ ...KEPT, departs: evidence.departMonth })).toBe(5);
    await evidence.seal();
    const report = await verified(evidence);
    expect(report).toMatchObject({ findings: [], retired: 5, intact: 1 });
    expect(report.ranges[0]).toMatchObject({ from: "1", state: "retired", anchored: "yes", signed: "yes" });
    expect(kinds(await verified(with_({ keys: newKeys() })))).toContain("departure_wrong");
    const copied: string[] = [];
    for await (const { kind, note } of readCopies(open.copy)) if (kind === "departure") copied.push(note);
    expect(copied).toEqual([expect.stringMatching(/^makegood\/evidence-departure\/\S+\n5\n[\s\S]*\u2014 makegood /)]);
    // The record of it gone, or one that says less: broken again.
    await tamper("update evidence_departure set count = 4");
    expect(kinds(await verified(with_({ keys })))).toEqual(["departure_wrong", "row_deleted"]);
  });

  it("what fails while the record is written keeps the month, and the next run takes it", async () => {
    open = await openEvidence();
    const { audit, evidence } = open;
    const { record } = await import("../audit/records.ts");
    await audit.write(record("old"), { now: new Date("2031-01-10T00:00:00Z") });
    const departs = async (_: unknown, { from }: { from: Date }) => {
      if (from.getUTCFullYear() === 2031) throw new Error("the key cannot be read");
    };
    await expect(audit.prune({ ...KEPT, departs })).rejects.toThrow("the key cannot be read");
    const [left] = await open.tamper("select count(*)::int as n from audit_record_203101_leaving");
    expect(left?.n).toBe(1);
    await audit.prune({ ...KEPT, departs: evidence.departMonth });
    expect(await verified(evidence)).toMatchObject({ findings: [], retired: 1 });
  });
});
