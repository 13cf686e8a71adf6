/** A group: failures that are the same one, and what people see of it. */

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
}

export interface GroupFilter {
  readonly topic?: string | undefined;
  readonly errorCode?: string | undefined;
  readonly tenantId?: string | undefined;
  /** True: only groups with open dead letters of ours. */
  readonly open?: boolean | undefined;
  /** True: those that were merged into others too. */
  readonly merged?: boolean | undefined;
  /** That something occurred in at some time from `since` on, and before `until`: the first before it, the last after it. */
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
  /** By the last occurrence (the default), or by open messages and then occurrences; a cursor belongs to its order. */
  readonly order?: "recent" | "size" | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}
