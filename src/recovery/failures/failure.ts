/** A failure as it is kept (an occurrence in a group, counted once), on its way in, and pages of them. */
import type { Run } from "../../store/home.ts";
import { type Column, columns, flagOrNull, int, moment, text, textOrNull } from "../columns.ts";
import type { Failure } from "../fingerprint/fingerprint.ts";
import type { GroupIdentity } from "../groups/group.ts";
import { idCursor, type Page, type Paged, paged, pageLimit } from "../pages.ts";
import { membersOf } from "../rows.ts";

/** `attempts` marks exactly this death as ingested, whatever the ledger says of the key: else a repeat would be queued for ever. */
export interface FailedMessage {
  readonly id: string;
  readonly generation: number;
  readonly attempts: number;
}

const message: Column<FailedMessage | null> = {
  sql: "case when o.message_id is not null then json_build_object('id', o.message_id, 'generation', o.generation, 'attempts', o.attempts)::text end",
  read: (found) => JSON.parse(found ?? "null"),
};

/** Of `recovery_occurrence o`: what is said of a failure when it comes in. */
const SAID = {
  /** The ledger's key: the same again counts nothing, with another hash it is a conflict. A message counts once per generation and group. */
  requestKey: textOrNull("o.request_key"),
  source: text<"message" | "api" | "stream">("o.source"),
  /** Supplied from outside. Where it is known already, it decides the group, whatever the fingerprint says; else it joins that group. */
  failureMatchId: textOrNull("o.match_id"),
  message,
  tenantId: textOrNull("o.tenant_id"),
  skillId: textOrNull("o.skill"),
  /** At most FINGERPRINT_LIMITS.textCharsMax characters; no NUL. */
  errorMessage: text("o.text"),
  stackTrace: textOrNull("o.stack"),
  /** Of an outside failure, as JSON text; null for our own. */
  failurePayload: textOrNull("o.payload"),
};

const occurrenceRecord = (s: string) =>
  columns({
    occurrenceId: int("o.id"),
    /** Where it was counted; after a merge still the group that is part of another now. */
    groupId: int("o.group_id"),
    at: moment("o.at"),
    ...SAID,
    /** Whether our own message is an open dead letter by this very death; null for outside failures. */
    open: flagOrNull(`case when o.message_id is not null then exists (select from ${s}.dead_letter d
      where d.id = o.message_id and d.resolution = 0 and d.attempts = o.attempts) end`),
    /** Of the identity it was ingested with: a supplied match id may have put it into a group of another code. */
    errorCode: text("o.code"),
    version: textOrNull("o.version"),
    redriveTopic: textOrNull("o.redrive_topic"),
    /** The message that carries an outside failure since it was sent again. */
    sentId: textOrNull("o.sent_id::text"),
    /** Whether an outside failure has not ended; null for our own. */
    openReport: flagOrNull(`case when o.message_id is null then
      (select o.sent_id is null and o.id > h.reports_closed from ${s}.recovery_group h where h.id = o.group_id) end`),
  });

export type Occurrence = ReturnType<ReturnType<typeof occurrenceRecord>["of"]>;

export interface NewOccurrence extends Pick<Occurrence, keyof typeof SAID> {
  /** 32 hex digits. */
  readonly payloadHash: string;
  readonly group: GroupIdentity;
  readonly version?: string | null | undefined;
  /** A topic of ours through which an outside failure can be sent again. */
  readonly redriveTopic?: string | null | undefined;
  /** False: count only, queue no evaluation. */
  readonly evaluate: boolean;
}

export function failureOf({ topic, sink }: GroupIdentity, { errorCode, errorMessage, stackTrace }: Occurrence): Failure {
  return { topic, sink, errorCode, errorMessage, ...(stackTrace === null ? {} : { stackTrace }) };
}

export interface OccurrencePage extends Page {
  readonly open?: boolean | undefined;
  readonly tenantId?: string | undefined;
}

/** Occurrences that are looked at for a page of open ones, or of others: a group of millions is never read for one page. */
const LOOKED_MAX = 5_000;

/** Newest first, those of groups merged into it included. Of open ones (or others) a page has what the next few thousand hold of them. */
export async function listOccurrences(s: string, run: Run, groupId: number, page: OccurrencePage): Promise<Paged<Occurrence>> {
  const { limit, cursor, open, tenantId } = page;
  const record = occurrenceRecord(s);
  const values: unknown[] = [idCursor(cursor), pageLimit(limit) + 1, Number.isSafeInteger(groupId) ? groupId : 0];
  const tenant = tenantId === undefined ? "" : `and o.tenant_id = $${values.push(tenantId)} and o.tenant_id is not null`;
  const root = `(select coalesce(g.merged_into, g.id) from ${s}.recovery_group g where g.id = $3::bigint)`;
  // Each group's newest first, then the newest of all: a large group is not read whole for one page.
  const newest = (list: string, most: string) => `select ${list} from ${membersOf(s, root)} x
    cross join lateral (select * from ${s}.recovery_occurrence o where o.group_id = x.id and o.id < $1::bigint ${tenant} order by o.id desc limit ${most}) o
    order by o.id desc limit ${most}`;
  // One look at a dead letter for each, by its id: joined, all dead letters of all groups would be read. One row at least says how far it looked.
  const isOpen = `(select d.resolution = 0 and d.attempts = k.attempts from ${s}.dead_letter d where d.id = k.message_id)`;
  const looked = `with k as materialized (${newest("o.id, o.message_id, o.attempts", String(LOOKED_MAX))})
    select ${record.list}, (select case when count(*) = ${LOOKED_MAX} then min(k.id)::text end from k)
    from (select) one left join lateral (select o.* from k join ${s}.recovery_occurrence o on o.id = k.id
      where k.message_id is not null and ${isOpen} is ${open ? "" : "not "}true order by k.id desc limit $2::int) o on true
    order by o.id desc`;
  const rows = await run(open === undefined ? newest(`${record.list}, null`, "$2::int") : looked, values);
  const found = rows.filter(([id]) => id !== null).map(record.of);
  const { data, nextCursor } = paged(found, limit, ({ occurrenceId }) => String(occurrenceId));
  return { data, nextCursor: nextCursor ?? rows[0]?.at(-1) ?? null };
}

/** A dead letter of ours (`d`, its lane `l` and topic `t`) that has not been ingested since it last died. */
export const DEAD_FAILURE = columns({
  id: text("d.id::text"),
  generation: int("d.generation"),
  attempts: int("d.attempts"),
  topic: text("t.name"),
  tenantId: textOrNull("nullif(l.tenant, '')"),
  code: textOrNull("d.code"),
  error: textOrNull("d.error"),
});

export type DeadFailure = ReturnType<typeof DEAD_FAILURE.of>;
