/** Tamper evidence of a store as one object: what seals, what verifies, what proves, and what rows need to leave. */
import type { Events } from "../observe/events.ts";
import type { MaintenanceJob } from "../platform/job.ts";
import type { Depart, DepartMonth, EvidenceName } from "../store/evidence.ts";
import type { Home } from "../store/home.ts";
import type { KnownBlock } from "./compare-copies.ts";
import { departMonth, departRows, sourceOf } from "./departures.ts";
import { type Erasure, eraseRecord } from "./erase.ts";
import type { NoteKey } from "./notes.ts";
import type { Outside } from "./outside.ts";
import { type BlockLeaves, blockWith, type Proof, prove } from "./proof.ts";
import { anchor, sealBlock, sealJob } from "./seal.ts";
import { blockSql, storedBlock, type VerifyPart, type VerifyPlace, verifyPart } from "./verify.ts";

export interface EvidenceOptions {
  /** The newest first; those with a private part sign. Empty: nothing is signed, and every report says so. */
  readonly keys?: readonly NoteKey[] | undefined;
  readonly outside?: Outside | undefined;
}

export interface Evidence {
  readonly keys: readonly NoteKey[];
  readonly outside: Outside | null;
  readonly job: MaintenanceJob;
  /** All that is committed, now; returns how many blocks. */
  seal(): Promise<number>;
  verify(from?: VerifyPlace, against?: Outside): Promise<VerifyPart>;
  prove(source: EvidenceName, id: string, known?: BlockLeaves): Promise<Proof | "unsealed" | null>;
  /** The block around a number, for many proofs of one block. */
  blockWith(pos: string): Promise<BlockLeaves | null>;
  /** False: there is no such audit record. */
  erase(erasure: Erasure): Promise<boolean>;
  /** Of the newest block; null: there is none yet. */
  height(): Promise<string | null>;
  blocks(after: string, limit: number): Promise<readonly KnownBlock[]>;
  readonly depart: Depart;
  readonly departMonth: DepartMonth;
}

export function createEvidence(home: Home, events: Events, { keys = [], outside }: EvidenceOptions = {}): Evidence {
  const parts = { home, keys, outside: outside ?? null, events };
  const depart: Depart = (run, source, ids, why) => departRows(run, home.s, keys, source, ids, why);
  return {
    keys,
    outside: parts.outside,
    job: sealJob(parts),
    async seal() {
      let blocks = 0;
      while ((await sealBlock(parts)) !== null) blocks++;
      await anchor(parts);
      return blocks;
    },
    verify: (from, against) => verifyPart({ ...parts, outside: against ?? parts.outside }, from),
    prove: (source, id, known) => prove(home, sourceOf(source), id, known),
    blockWith: (pos) => blockWith(home.read("prove a record"), home.s, pos),
    erase: (erasure) => eraseRecord(home, depart, erasure),
    async height() {
      return (await home.read("read evidence")(`select max(height)::text from ${home.s}.evidence_block`))[0]?.[0] ?? null;
    },
    async blocks(after, limit) {
      const where = "b.height > $1::bigint order by b.height limit $2::int";
      const rows = await home.read("read evidence")(blockSql(home.s, where), [after, limit]);
      return rows.map(storedBlock).map(({ height, note }) => ({ height, note }));
    },
    depart,
    departMonth: (run, month) => departMonth(run, home.s, keys, month),
  };
}
