/**
 * Rows of the recovery tables and what they are called outside: for each record the columns to select, as text, and how a row is read.
 */

import type { Row } from "../store/home.ts";
import { epoch, fromEpoch } from "../store/shared/clock-sql.ts";
import type { Occurrence } from "./failures/failure.ts";
import type { Group, GroupIdentity } from "./groups/group.ts";
import type { Provenance } from "./provenance.ts";

export const number = (text: string | null | undefined): number | null =>
  text === null || text === undefined ? null : Number(text);
const date = (text: string | null | undefined) => fromEpoch(text) as Date;

/** `g` and all that was merged into it. */
export const membersOf = (s: string, g: string) =>
  `(select ${g} as id union all select m.id from ${s}.recovery_group m where m.merged_into = ${g})`;

/** A dead letter that is open by a death that was counted in a group. */
export const OPEN_IN_GROUP = "d.resolution = 0 and d.ingested_attempts = d.attempts";

/** Of `recovery_group g`: see groups/rolling-counts.ts. */
const openOf = (
  s: string,
) => `case when g.merged_into is null then g.open + coalesce((select sum(o.n) from ${membersOf(s, "g.id")} x
    join ${s}.recovery_open o on o.group_id = x.id), 0) else 0 end`;

/** Of group `g` and what was merged into it: failures that other services reported and that have not ended, as `o`. */
export const openReportsOf = (s: string, g: string) => `${membersOf(s, g)} x join ${s}.recovery_group k on k.id = x.id
    join ${s}.recovery_occurrence o on o.group_id = x.id and o.message_id is null and o.sent_id is null and o.id > k.reports_closed`;
/** How many they are, of `recovery_group g`: each group has its own counted. */
export const reportsOf = (s: string) => `(case when g.merged_into is null
    then g.reports + coalesce((select sum(m.reports) from ${s}.recovery_group m where m.merged_into = g.id), 0) else 0 end)`;

/** Of `recovery_group g`; `open`: where it is known how many of its messages are. */
export const groupColumns = (
  s: string,
  open = openOf(s),
) => `g.id::text, g.fingerprint, g.match_id, g.topic, g.sink, g.code, g.template, g.frame, g.rule,
  g.occurrences::text, ${epoch("g.first_at")}, ${epoch("g.last_at")}, g.version::text, g.merged_into::text, g.held_by, (${open})::text,
  ${reportsOf(s)}::text, g.resolved_in, ${epoch("g.resolved_at")}, g.resolved_by, g.regressed_in, ${epoch("g.regressed_at")}`;

export function groupOf(row: Row): Group {
  return {
    groupId: Number(row[0]),
    fingerprint: row[1] as string,
    failureMatchId: row[2] as string,
    topic: row[3] as string,
    sink: row[4] as string,
    errorCode: row[5] as string,
    template: row[6] as string,
    topFrame: row[7] as string | null,
    groupRule: row[8] as string | null,
    occurrenceCount: Number(row[9]),
    firstAt: date(row[10]),
    lastAt: date(row[11]),
    version: Number(row[12]),
    mergedInto: number(row[13]),
    heldBy: row[14] as string | null,
    openMessages: Number(row[15]),
    openReports: Number(row[16]),
    resolvedIn: row[17] as string | null,
    resolvedAt: fromEpoch(row[18]),
    resolvedBy: row[19] as string | null,
    regressedIn: row[20] as string | null,
    regressedAt: fromEpoch(row[21]),
    regression: row[21] !== null,
  };
}

/** The arguments of a new group, in the order of `IDENTITY_COLUMNS`. */
export const IDENTITY_COLUMNS = "fingerprint, match_id, topic, sink, code, template, frame, rule";
export const identityValues = (g: GroupIdentity): (string | null)[] => [
  g.fingerprint,
  g.failureMatchId,
  g.topic,
  g.sink,
  g.errorCode,
  g.template,
  g.topFrame,
  g.groupRule,
];

/** Of `recovery_occurrence o`. */
export const occurrenceColumns = (
  s: string,
) => `o.id::text, o.group_id::text, ${epoch("o.at")}, o.request_key, o.source, o.match_id, o.message_id::text,
  o.generation::text, o.attempts::text, o.tenant_id, o.skill, o.text, o.stack, o.payload,
  case when o.message_id is not null then ${openBy(s)} end::text, o.code, o.version, o.redrive_topic, o.sent_id::text,
  case when o.message_id is null then ${reportIsOpen(s, "o")} end::text`;

/** Whether the reported failure `o` has not ended. */
export const reportIsOpen = (s: string, o: string) =>
  `(select ${o}.sent_id is null and ${o}.id > h.reports_closed from ${s}.recovery_group h where h.id = ${o}.group_id)`;

/** Whether the message of `recovery_occurrence o` is an open dead letter by this very death. */
export const openBy = (s: string) =>
  `exists (select from ${s}.dead_letter d where d.id = o.message_id and d.resolution = 0 and d.attempts = o.attempts)`;

export function occurrenceOf(row: Row): Occurrence {
  const [id, generation, attempts] = [row[6], row[7], row[8]];
  return {
    occurrenceId: Number(row[0]),
    groupId: Number(row[1]),
    at: date(row[2]),
    requestKey: row[3] as string | null,
    source: row[4] as Occurrence["source"],
    failureMatchId: row[5] as string | null,
    message: id ? { id, generation: Number(generation), attempts: Number(attempts) } : null,
    tenantId: row[9] as string | null,
    skillId: row[10] as string | null,
    errorMessage: row[11] as string,
    stackTrace: row[12] as string | null,
    failurePayload: row[13] as string | null,
    open: row[14] === null ? null : row[14] === "true",
    errorCode: row[15] as string,
    version: row[16] as string | null,
    redriveTopic: row[17] as string | null,
    sentId: row[18] as string | null,
    openReport: row[19] === null ? null : row[19] === "true",
  };
}

/** Of `recovery_provenance p`. */
export const PROVENANCE_COLUMNS = `p.id::text, ${epoch("p.at")}, p.group_id::text, p.candidate_id::text, p.redrive_id, p.event, p.actor,
  p.actor_type, p.reason, p.rule, p.action, p.confidence_before::text, p.confidence_after::text, p.duration_ms::text, p.details`;

export function provenanceOf(row: Row): Provenance {
  return {
    provenanceId: Number(row[0]),
    at: date(row[1]),
    groupId: number(row[2]),
    candidateId: number(row[3]),
    redriveId: row[4] as string | null,
    eventType: row[5] as string,
    actor: row[6] as string,
    actorType: row[7] as Provenance["actorType"],
    reason: row[8] as string | null,
    ruleId: row[9] as string | null,
    action: row[10] as string | null,
    confidenceBefore: number(row[11]),
    confidenceAfter: number(row[12]),
    durationMs: number(row[13]),
    details: row[14] as string | null,
  };
}
