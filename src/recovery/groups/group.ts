/** A group: failures that are the same one, and what people see of it. */
import { columns, flag, int, intOrNull, moment, momentOrNull, type RecordOf, text, textOrNull } from "../columns.ts";
import type { Page } from "../pages.ts";
import { membersOf } from "../rows.ts";

/** Of `recovery_group g`: what a group is, before anything was counted in it. */
const IDENTITY = {
  /** Versioned key of recovery/fingerprint; unique. */
  fingerprint: text("g.fingerprint"),
  /** Made from the fingerprint (UUIDv5); unique. */
  failureMatchId: text("g.match_id"),
  topic: text("g.topic"),
  sink: text("g.sink"),
  errorCode: text("g.code"),
  template: text("g.template"),
  topFrame: textOrNull("g.frame"),
  /** The hand-made group rule that decided, if one did. */
  groupRule: textOrNull("g.rule"),
};

export type GroupIdentity = RecordOf<typeof IDENTITY>;

export const IDENTITY_COLUMNS = Object.values(IDENTITY).map(({ sql }) => sql.replace("g.", ""));

/** In the order of `IDENTITY_COLUMNS`. */
export const identityOf = (group: GroupIdentity) =>
  Object.fromEntries(Object.keys(IDENTITY).map((name) => [name, group[name as keyof GroupIdentity]])) as unknown as GroupIdentity;

/** See rolling-counts.ts. */
const openOf = (
  s: string,
) => `case when g.merged_into is null then g.open + coalesce((select sum(o.n) from ${membersOf(s, "g.id")} x
    join ${s}.recovery_open o on o.group_id = x.id), 0) else 0 end`;

export const reportsOf = (s: string) => `(case when g.merged_into is null
    then g.reports + coalesce((select sum(m.reports) from ${s}.recovery_group m where m.merged_into = g.id), 0) else 0 end)`;

/** `open`: where it is known how many of its messages are. */
export const groupRecord = (s: string, open = openOf(s)) =>
  columns({
    groupId: int("g.id"),
    ...IDENTITY,
    /** All that were ever counted, those of groups merged into this one included. */
    occurrenceCount: int("g.occurrences"),
    firstAt: moment("g.first_at"),
    lastAt: moment("g.last_at"),
    /** Raised by merge, split and hold: what was approved for another version has lapsed. */
    version: int("g.version"),
    /** The group this one became part of; its occurrences are counted and listed there. */
    mergedInto: intOrNull("g.merged_into"),
    /** Held for a person: nothing runs on it by itself. */
    heldBy: textOrNull("g.held_by"),
    /** Dead letters that are open by the death that was counted here: a message is open in one group at most. 0 for a merged group. */
    openMessages: int(open),
    /** Reported by others and not ended: not sent again through a topic of ours, nor healed by their reporters, nor resolved by a person. */
    openReports: int(reportsOf(s)),
    /** Where a person resolved it: in which version (null: in any), when and who. */
    resolvedIn: textOrNull("g.resolved_in"),
    resolvedAt: momentOrNull("g.resolved_at"),
    resolvedBy: textOrNull("g.resolved_by"),
    /** A failure of that version or a later one brought it back: which version, and when. */
    regressedIn: textOrNull("g.regressed_in"),
    regressedAt: momentOrNull("g.regressed_at"),
    regression: flag("g.regressed_at is not null"),
  });

export type Group = ReturnType<ReturnType<typeof groupRecord>["of"]>;

/** Nothing is suggested for it until a failure brings it back. */
export const isResolved = ({ resolvedAt, regressedAt }: Pick<Group, "resolvedAt" | "regressedAt">): boolean =>
  resolvedAt !== null && regressedAt === null;

export interface GroupFilter extends Page {
  readonly topic?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly failureMatchId?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly open?: boolean | undefined;
  readonly reported?: boolean | undefined;
  /** Those that were merged into others too. */
  readonly merged?: boolean | undefined;
  /** That something occurred in at some time from `since` on, and before `until`: the first before it, the last after it. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** By the last occurrence (the default), or by open messages and then occurrences; a cursor belongs to its order. */
  readonly order?: "recent" | "size" | undefined;
}
