/** The addresses of audit records and of the evidence for them and for provenance. */
import { z } from "zod";
import { body, created, exactBody, lists, route, routes, shows, takes } from "./route.ts";
import * as v from "./values.ts";

const payload = z.unknown().describe("JSON, kept byte for byte");

export const auditRecord = v.shape("AuditRecord", {
  ...v.texts("event_id", "audit_type", "correlation_id"),
  occurred_at: v.instant().describe("by the producer's clock"),
  recorded_at: v.instant().describe("by the store's clock"),
  actor: z
    .string()
    .describe("the name of the token that wrote it, where tokens are used; what the producer claims is in the payload"),
  ...v.texts("resource", "outcome", "sequence"),
  position: z.string().nullable().describe("its place in the order of commits; as `cursor` it leads to what came after"),
});
const withPayload = auditRecord.extend({ payload }).meta({ id: "AuditRecordWithPayload" });

export const auditHold = v.shape("AuditHold", {
  id: z.string(),
  ...v.textsOrNull("event_id", "correlation_id"),
  ...v.texts("reason", "placed_by"),
  placed_at: v.instant(),
  ...v.textsOrNull("released_by"),
  ...v.instantsOrNull("released_at"),
  ...v.textsOrNull("release_reason"),
});

/** A whole proof: the record, its salt, and its way to a signed note; `makegood evidence check` reads it without a store. */
const proof = z
  .looseObject({ form: z.string(), source: z.string(), record: z.record(z.string(), z.string().nullable()).nullable() })
  .meta({ id: "EvidenceProof" });

const finding = v.shape("EvidenceFinding", { kind: z.string(), ...v.textsOrNull("height", "source", "id"), detail: z.string() });
const range = v.shape("EvidenceRange", {
  ...v.texts("from", "to"),
  state: z.enum(["intact", "broken", "retired"]),
  anchored: z.enum(["yes", "no", "unknown"]).describe("whether the copy outside has it; unknown: it cannot be read from here"),
  signed: z.enum(["yes", "no", "unknown"]).describe("by a trusted key; unknown: there is no key to ask with"),
});
export const evidenceReport = v.shape("EvidenceReport", {
  ranges: z.array(range),
  findings: z.array(finding),
  ...v.integers("more", "blocks", "intact", "retired", "erased", "broken", "unsealed"),
  next_cursor: z.string().nullable().describe("where the next part begins; null: that was all"),
});
const evidenceState = v.shape("EvidenceState", {
  keys: z.array(z.string()).describe("public parts of the keys that are trusted, the newest first"),
  ...v.textsOrNull("copied_to", "height"),
});
const block = v.shape("EvidenceBlock", v.texts("height", "note"));

const eventId = v.keyText(255);
const searched = {
  audit_type: v.text().describe("a registered type"),
  correlation_id: v.text().describe("what it belongs to"),
  ...v.fields(v.text(), "actor", "resource", "outcome"),
  since: v.moment().describe("happened at this moment or later"),
  until: v.moment().describe("happened before this moment"),
};
const recorded = z
  .looseObject({ event_id: z.string(), status: z.enum(["stored", "duplicate", "queued"]) })
  .meta({ id: "AuditAnswer" });
const record = z.looseObject({}).describe("a record of the type, whole or in the short form of the audit stream");
const held = v.object({
  reason: v.reason(),
  ...v.optionals({
    event_id: eventId.describe("this record"),
    correlation_id: eventId.describe("all of this, and what comes later"),
  }),
});
const because = body("intervention", v.object({ reason: v.reason() }));
const only = v.object(v.optionals({ cursor: v.text().describe("where the part before ended") }));
const sources = ["audit", "provenance", "recovery_provenance"] as const;
const proven = v.object({ id: v.text(), source: v.optional(v.oneOf(sources).describe("audit unless said")) });
const NEEDS = ["needs_postgres"] as const;
const RECORD = "Record what was done: 201 stored, 200 it was there already, 202 queued durably";
const LIST = "Audit records in the order of commits: one that goes on from a cursor misses nothing";
const EXPORT = "Audit records, each with the proof that it is what was sealed";
const ERASE = "Take the content of a record away for good; that it was there stays proven";
const VERIFY = "Compare rows, leaves, blocks, signatures and the copy outside, a part at a time";

export const AUDIT_ROUTES = routes({
  listAudit: lists(
    LIST,
    z.union([auditRecord, withPayload]),
    { ...searched, payload: v.flag().describe("with payloads") },
    NEEDS,
  ),
  exportAudit: lists(EXPORT, proof, searched, NEEDS),
  listAuditHolds: lists("Legal holds, newest first", auditHold, { active: v.flag().describe("only those that hold") }, NEEDS),
  holdAudit: takes(
    "decide",
    "Keep records past every retention",
    created(auditHold),
    body("intervention", held),
    ...NEEDS,
    "record_not_found",
  ),
  releaseAuditHold: takes("decide", "End a legal hold; its line stays", auditHold, because, ...NEEDS),
  getAudit: shows("One audit record with its payload", withPayload, { errors: [...NEEDS] }),
  eraseAudit: {
    ...takes("decide", ERASE, z.strictObject({ erased: z.literal(true) }), because, ...NEEDS, "record_held"),
    effect: "destroys",
  },
  recordAudit: route(
    "accept",
    RECORD,
    { 200: recorded, 201: recorded, 202: recorded },
    { body: exactBody("audit", record), errors: ["not_found", "key_conflict", "store_full", "needs_postgres"] },
  ),
  getEvidence: shows("Which keys are trusted, how far the chain goes, and where it is copied to", evidenceState, {
    errors: [...NEEDS],
  }),
  verifyEvidence: shows(VERIFY, evidenceReport, { query: only, errors: [...NEEDS] }),
  listEvidenceBlocks: lists("Signed notes of blocks, oldest first", block, {}, NEEDS),
  proveRecord: shows("The proof of one record", proof, { query: proven, errors: [...NEEDS, "record_not_found", "not_sealed"] }),
});
