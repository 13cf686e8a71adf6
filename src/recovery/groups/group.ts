/** A group: failures that are the same one, and what people see of it. */
import type { Page } from "../pages.ts";

/** What a group is: the fingerprint and what people see of it. */
export interface GroupIdentity {
  /** Versioned key of recovery/fingerprint; unique. */
  readonly fingerprint: string;
  /** Made from the fingerprint (UUIDv5); unique. */
  readonly failureMatchId: string;
  readonly topic: string;
  readonly sink: string;
  readonly errorCode: string;
  readonly template: string;
  readonly topFrame: string | null;
  /** The hand-made group rule that decided, if one did. */
  readonly groupRule: string | null;
}

export interface Group extends GroupIdentity {
  readonly groupId: number;
  /** All that were ever counted, those of groups merged into this one included. */
  readonly occurrenceCount: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** Raised by merge, split and hold: what was approved for another version has lapsed. */
  readonly version: number;
  /** The group this one became part of; its occurrences are counted and listed there. */
  readonly mergedInto: number | null;
  /** Held for a person: nothing runs on it by itself. */
  readonly heldBy: string | null;
  /**
   * Messages of ours in it that are open dead letters now, each by the occurrence that names its present death (`attempts` equal): a
   * message is open in one group at most. 0 for a group that was merged into another.
   */
  readonly openMessages: number;
  /**
   * Failures that other services reported and that have not ended: nobody sent them again through a topic of ours, none that they came
   * before was executed with success by who reported them, and no person resolved them.
   */
  readonly openReports: number;
  /** Where a person resolved it: in which version (null: in any), when and who. */
  readonly resolvedIn: string | null;
  readonly resolvedAt: Date | null;
  readonly resolvedBy: string | null;
  /** A failure of that version or a later one brought it back: which version, and when. */
  readonly regressedIn: string | null;
  readonly regressedAt: Date | null;
  readonly regression: boolean;
}

/** Nothing is suggested for it until a failure brings it back. */
export const isResolved = ({ resolvedAt, regressedAt }: Pick<Group, "resolvedAt" | "regressedAt">): boolean =>
  resolvedAt !== null && regressedAt === null;

export interface GroupFilter extends Page {
  readonly topic?: string | undefined;
  readonly errorCode?: string | undefined;
  /** The group's own, or one that was supplied with a failure of it. */
  readonly failureMatchId?: string | undefined;
  readonly tenantId?: string | undefined;
  /** True: only groups with open dead letters of ours. */
  readonly open?: boolean | undefined;
  /** True: only groups with open failures that other services reported. */
  readonly reported?: boolean | undefined;
  /** True: those that were merged into others too. */
  readonly merged?: boolean | undefined;
  /** That something occurred in at some time from `since` on, and before `until`: the first before it, the last after it. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** By the last occurrence (the default), or by open messages and then occurrences; a cursor belongs to its order. */
  readonly order?: "recent" | "size" | undefined;
}
