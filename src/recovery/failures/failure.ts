/** A failure on its way in and as it is kept: an occurrence in a group, counted once. */
import { type Column, columns, flagOrNull, int, moment, text, textOrNull } from "../columns.ts";
import type { Failure } from "../fingerprint/fingerprint.ts";
import type { GroupIdentity } from "../groups/group.ts";

export type FailureSource = "message" | "api" | "stream";

/**
 * A message of ours that failed. `attempts` marks exactly this death as ingested, whatever the ledger says of the key (else a repeat
 * would be queued for ever); a message that is not dead with these attempts is left alone.
 */
export interface FailedMessage {
  readonly id: string;
  readonly generation: number;
  readonly attempts: number;
}

export interface NewOccurrence {
  /**
   * The ledger's key: the same key again counts nothing; with another hash it is a conflict. Null: no repeat by its key. Under any key a
   * message counts once per generation and group (with those merged into it): a fingerprint may change in between.
   */
  readonly requestKey: string | null;
  /** 32 hex digits. */
  readonly payloadHash: string;
  readonly source: FailureSource;
  readonly group: GroupIdentity;
  /**
   * Supplied from outside: kept, and joins the group. Known already (supplied before, or the own id of a group): its group, whatever
   * the fingerprint says. After that the fingerprint decides, then the identity's own match id; a group is made where none is known.
   */
  readonly failureMatchId: string | null;
  readonly message: FailedMessage | null;
  readonly tenantId: string | null;
  readonly skillId: string | null;
  /** At most FINGERPRINT_LIMITS.textCharsMax characters; no NUL. */
  readonly errorMessage: string;
  readonly stackTrace: string | null;
  /** The failure payload of an outside failure, as JSON text; null for our own. */
  readonly failurePayload: string | null;
  /** Of the program that failed. */
  readonly version?: string | null | undefined;
  /** A topic of ours through which an outside failure can be sent again. */
  readonly redriveTopic?: string | null | undefined;
  /** False: count only, queue no evaluation. */
  readonly evaluate: boolean;
}

const messageOf: Column<FailedMessage | null> = {
  sql: "case when o.message_id is not null then json_build_object('id', o.message_id, 'generation', o.generation, 'attempts', o.attempts)::text end",
  read: (found) => JSON.parse(found ?? "null"),
};

/** Of `recovery_occurrence o`. */
export const occurrenceRecord = (s: string) =>
  columns({
    occurrenceId: int("o.id"),
    /** Where it was counted; after a merge still the group that is part of another now. */
    groupId: int("o.group_id"),
    at: moment("o.at"),
    requestKey: textOrNull("o.request_key"),
    source: text<FailureSource>("o.source"),
    failureMatchId: textOrNull("o.match_id"),
    message: messageOf,
    tenantId: textOrNull("o.tenant_id"),
    skillId: textOrNull("o.skill"),
    errorMessage: text("o.text"),
    stackTrace: textOrNull("o.stack"),
    failurePayload: textOrNull("o.payload"),
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

export function failureOf({ topic, sink }: GroupIdentity, { errorCode, errorMessage, stackTrace }: Occurrence): Failure {
  return { topic, sink, errorCode, errorMessage, ...(stackTrace === null ? {} : { stackTrace }) };
}

/**
 * `conflict`: the key belongs to another payload; nothing is counted, the others of the call are. `first`: this occurrence made the group.
 * `evaluationQueued`: it was counted, has `evaluate`, and an evaluation of its group was queued with the write. Ids and `occurrenceCount` as they
 * are after the whole write, for a group that was merged those of the one it became part of. `failureMatchId`: the supplied one, else the
 * group's own.
 */
export interface Ingested {
  readonly kind: "accepted" | "duplicate" | "conflict";
  readonly groupId: number;
  readonly candidateId: number;
  readonly failureMatchId: string;
  readonly occurrenceCount: number;
  readonly first: boolean;
  /** It brought a resolved group back. */
  readonly regression: boolean;
  readonly evaluationQueued: boolean;
}

/** A dead letter of ours that has not been ingested since it last died. */
export interface DeadFailure extends FailedMessage {
  readonly topic: string;
  readonly tenantId: string | null;
  readonly code: string | null;
  readonly error: string | null;
}
