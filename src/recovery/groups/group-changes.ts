/**
 * What people (and the system, when a template becomes more general) do to groups: merge and split. Both are one write with the rule
 * for the future and the line of provenance.
 */

import type { At } from "../../store/store.ts";
import type { DocumentWrite } from "../documents.ts";
import type { NewProvenance } from "../provenance.ts";
import type { Group, GroupIdentity } from "./group.ts";

/**
 * Merge: `from` becomes part of `into`, and so does what was merged into `from`; counts are added up (those of `from` itself stay as they
 * were), a hold goes over, approvals of both lapse. The open candidate of `from` ends: undecided it is rejected, approved it is skipped,
 * with a line of provenance by the actor of the first one given.
 */
export interface GroupMerge extends At {
  readonly from: number;
  readonly into: number;
  readonly document?: DocumentWrite | undefined;
  readonly provenance: readonly NewProvenance[];
}

/**
 * Split: makes (or finds) the group of `identity` and returns it; `moveOccurrences` then brings over what belongs there, `reopen` gives it
 * its first candidate. Raises the version of both.
 */
export interface GroupSplit extends At {
  readonly groupId: number;
  readonly identity: GroupIdentity;
  readonly document?: DocumentWrite | undefined;
  readonly provenance: readonly NewProvenance[];
}

export type GroupChanged =
  | { readonly kind: "done"; readonly group: Group }
  | { readonly kind: "not_found"; readonly groupId: number }
  /**
   * The candidate of this group is executing or unknown, it is merged into another already, or (split) it is the one that is split:
   * nothing changed.
   */
  | { readonly kind: "wrong_state"; readonly group: Group }
  | { readonly kind: "version_conflict" };
