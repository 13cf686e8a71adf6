/**
 * The tables that are moved beside messages, in the order in which they are put. Not among them: what others are counted from (triggers make
 * it anew), leases and leaders, and the accounts of conservation, which count what comes as accepted here.
 */
import type { RecordKind } from "../../movable-records.ts";
import { OUTCOME_CODES, RESOLUTION_CODES } from "../db.ts";

export interface TableSpec {
  readonly kind: RecordKind;
  /** As it is called in a file. */
  readonly name: string;
  /** The table itself, where its name in a file is another one. */
  readonly table?: string;
  readonly key: readonly string[];
  /** Which rows, of `t`; several entries of one table stand in the order in which their rows may refer to each other. */
  readonly where?: string;
  /** What is read, where that is more than its rows. */
  readonly from?: (s: string) => string;
  /** Left out: made anew from other rows. */
  readonly made?: readonly string[];
  /** What never changes about a row; absent: nothing of it does. */
  readonly fixed?: readonly string[];
  /** The column that the table numbers itself. */
  readonly numbered?: string;
  /** How a state that is there and one that comes are one. */
  readonly merged?: string;
  /** Proof of the other rows: of use only with all of them. */
  readonly proof?: true;
  /** The rows of its source, by their number, that a leaf may be there for already. */
  readonly source?: number;
  /** Its rows stand in months by this column. */
  readonly monthOf?: string;
}

const key = (kind: RecordKind, name: string, columns: string, more: Partial<TableSpec> = {}): TableSpec => ({
  ...{ kind, name, key: columns.split(" ") },
  ...more,
});

const greatest = (...columns: readonly string[]): string =>
  columns.map((column) => `${column} = greatest(t.${column}, excluded.${column})`).join(", ");

/** In which installation blocks and departures were made, up to which number; of those of this store, up to the last (evidence/origins.ts). */
const ORIGINS = "t.kind in ('moved_block', 'moved_departure')";
const originsFrom = (s: string): string => {
  const own = (
    kind: string,
    table: string,
    number: string,
    at: string,
  ) => `union all (select '${kind}', o.${number}, o.${at}, i.id::text
    from ${s}.${table} o, ${s}.installation i where not exists (select from ${s}.evidence_anchor a where a.kind = '${kind}' and a.number >= o.${number})
    order by o.${number} desc limit 1)`;
  return `((select t.* from ${s}.evidence_anchor t where ${ORIGINS}) ${own("moved_block", "evidence_block", "height", "sealed_at")}
    ${own("moved_departure", "evidence_departure", "id", "at")})`;
};

/** First of all: a row that is put is noted for sealing, unless its leaf is there. */
const PROOF: readonly TableSpec[] = [
  key("audit", "evidence_state", "single", { proof: true, merged: greatest("next_pos") }),
  key("audit", "evidence_source", "source", { proof: true, merged: greatest("done_id", "until_id") }),
  key("audit", "evidence_leaf", "source pos", { proof: true, fixed: ["id", "leaf"] }),
  key("audit", "evidence_block", "height", { proof: true }),
  key("audit", "evidence_departure", "id", { proof: true, numbered: "id" }),
  key("audit", "evidence_origin", "kind number", { proof: true, table: "evidence_anchor", where: ORIGINS, from: originsFrom }),
];

const AUDIT: readonly TableSpec[] = [
  key("audit", "audit_event", "event_id", { numbered: "seq" }),
  key("audit", "audit_record", "recorded_at seq", { source: 1, monthOf: "recorded_at" }),
  key("audit", "audit_hold", "id", { numbered: "id", fixed: ["placed_at", "placed_by"] }),
  key("audit", "provenance", "id", { numbered: "id", source: 2 }),
];

const GROUP = { table: "recovery_group", made: ["open", "reports"], fixed: ["fingerprint"], numbered: "id" } as const;

const RECOVERY: readonly TableSpec[] = [
  key("recovery", "recovery_group", "id", { ...GROUP, where: "t.merged_into is null" }),
  key("recovery", "recovery_group_merged", "id", { ...GROUP, where: "t.merged_into is not null" }),
  key("recovery", "recovery_match", "match_id", { fixed: [] }),
  key("recovery", "recovery_occurrence", "id", { numbered: "id", fixed: ["at", "hash"] }),
  key("recovery", "recovery_candidate", "id", { numbered: "id", fixed: ["round", "created_at"] }),
  key("recovery", "recovery_approval", "candidate_id actor", { numbered: "n", fixed: [] }),
  key("recovery", "recovery_outcome", "level scope action", { fixed: [] }),
  key("recovery", "recovery_document_kind", "kind", { merged: greatest("revision") }),
  key("recovery", "recovery_document", "kind id", { fixed: [] }),
  key("recovery", "recovery_document_version", "kind id version"),
  key("recovery", "redrive", "id", { fixed: ["request_hash", "created_at"] }),
  key("recovery", "redrive_group", "redrive_id no", { fixed: ["topic"] }),
  key("recovery", "redrive_item", "redrive_id n", { fixed: ["message_id"] }),
  key("recovery", "recovery_observation", "redrive_id group_id run", { fixed: ["action"] }),
  key("recovery", "message_origin", "message_id", { fixed: ["replay_of"] }),
  key("recovery", "recovery_mirror", "primary_id", { fixed: ["message_id"] }),
  key("recovery", "recovery_provenance", "id", { numbered: "id", source: 3 }),
];

const USAGE: readonly TableSpec[] = [
  key("usage", "chat_turns", "tenant_id turn_id", { fixed: ["request_id", "chat_id", "reserved_credits"] }),
  key("usage", "quota_usage", "tenant_id user_id period bucket", { fixed: [] }),
];

/** The group in which a dead letter was counted: the dead letter itself came with its message. */
export const LINKS = "dead_letter_group";

const LAST: readonly TableSpec[] = [
  key("recovery", LINKS, "id", {
    ...{ table: "dead_letter", fixed: [] },
    where: "(t.group_id is not null or t.ingested_attempts is not null)",
  }),
];

export const TABLES: readonly TableSpec[] = [...PROOF, ...AUDIT, ...RECOVERY, ...USAGE, ...LAST];

export const LINK_COLUMNS: readonly string[] = ["id", "group_id", "ingested_attempts"];
/** Settled ones come only with `all`; one that was replayed is settled once it was delivered. */
export const linksOpen = (
  s: string,
): string => `(t.resolution = ${RESOLUTION_CODES.open} or t.resolution = ${RESOLUTION_CODES.replayed}
  and not exists (select from ${s}.attempt a where a.message_id = t.id and a.outcome in (${OUTCOME_CODES.delivered}, ${OUTCOME_CODES.duplicate})))`;
