/**
 * The audit seam in PostgreSQL. Identity and record are one statement, so one transaction: a write that was interrupted left
 * both or neither, and a repeat of it says which (DA-14).
 */
import { MakegoodError } from "../../../message/errors.ts";
import { payloadHash } from "../../../message/validate.ts";
import type { AuditRecord, AuditStore, AuditWritten, StoredAudit } from "../../audit.ts";
import { clockSql, perClock } from "../../shared/clock-sql.ts";
import type { At } from "../../store.ts";
import type { Row } from "../connection.ts";
import type { Db } from "../db.ts";
import { isMissingPartition } from "../sql-errors.ts";
import { createHolds } from "./holds.ts";
import { createAuditList } from "./list.ts";
import { ensureMonths, monthOf } from "./months.ts";
import { createAuditPrune } from "./prune.ts";

const writeSql = (s: string, clock: string) => `with e as (
    insert into ${s}.audit_event (event_id, hash, recorded_at) values ($1, $2::uuid, ${clock})
    on conflict (event_id) do nothing returning seq, recorded_at)
  insert into ${s}.audit_record (seq, recorded_at, event_id, audit_type, correlation_id, occurred_at, actor, resource, outcome, payload)
  select e.seq, e.recorded_at, $1, $3, $4, $5::timestamptz, $6, $7, $8, $9 from e returning seq::text`;

const COLUMNS = `r.seq::text, to_char(r.recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), r.event_id, r.audit_type,
  r.correlation_id, to_char(r.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), r.actor, r.resource, r.outcome, r.payload, l.pos::text`;

function stored(row: Row): StoredAudit {
  const [sequence, recordedAt, eventId, auditType, correlationId, occurredAt, actor, resource, outcome, payload, position] =
    row as string[] as [string, string, string, string, string, string, string, string, string, string, string | null];
  return {
    position,
    sequence,
    recordedAt: new Date(recordedAt),
    eventId,
    auditType,
    correlationId,
    occurredAt: new Date(occurredAt),
    actor,
    resource,
    outcome,
    payload,
  };
}

export function createPostgresAudit(db: Db): AuditStore {
  const { connection, s } = db;
  const sql = perClock((clock) => writeSql(s, clock));

  async function insert(record: AuditRecord, hash: string, now: Date | undefined): Promise<string | null> {
    const { eventId, auditType, correlationId, occurredAt, actor, resource, outcome, payload } = record;
    const values = [eventId, hash, auditType, correlationId, occurredAt.toISOString(), actor, resource, outcome, payload];
    const name = now === undefined ? "mg_audit_write" : undefined;
    const [row] = await connection.rows("write an audit record", sql(now), values, { name });
    return row?.[0] ?? null;
  }

  /** Accepting must not depend on upkeep: a month that is missing is made here, by the server's own clock. */
  async function inserted(record: AuditRecord, hash: string, now: Date | undefined): Promise<string | null> {
    try {
      return await insert(record, hash, now);
    } catch (thrown) {
      if (!isMissingPartition(thrown instanceof MakegoodError ? thrown.cause : thrown)) throw thrown;
      const [row] = await connection.rows("read the time", `select extract(epoch from ${clockSql(now)})::text`, [], {
        reads: true,
      });
      await ensureMonths(connection, s, [monthOf(Number(row?.[0]) * 1_000)]);
      return insert(record, hash, now);
    }
  }

  async function write(record: AuditRecord, at: At = {}): Promise<AuditWritten> {
    const hash = payloadHash(record.payload);
    // Twice: the identity may be pruned between the write that met it and the look at it.
    for (let tries = 0; tries < 2; tries++) {
      const sequence = await inserted(record, hash, at.now);
      if (sequence !== null) return { kind: "stored", sequence };
      const [known] = await connection.rows(
        "look for an audit event",
        `select seq::text, replace(hash::text, '-', '') from ${s}.audit_event where event_id = $1`,
        [record.eventId],
        { reads: true },
      );
      if (known) return { kind: known[1] === hash ? "duplicate" : "conflict", sequence: known[0] as string };
    }
    throw new MakegoodError(
      "retry_transaction",
      `audit event ${record.eventId} was deleted while it was written; write it again`,
    );
  }

  return {
    write,
    async get(eventId) {
      const [row] = await connection.rows(
        "read an audit record",
        `select ${COLUMNS} from ${s}.audit_event e join ${s}.audit_record r on r.recorded_at = e.recorded_at and r.seq = e.seq
        left join ${s}.evidence_leaf l on l.source = 1 and l.id = r.seq where e.event_id = $1`,
        [eventId],
        { reads: true },
      );
      return row ? stored(row) : null;
    },
    list: createAuditList(db, COLUMNS, stored),
    ...createHolds(db),
    prune: createAuditPrune(db),
  };
}
