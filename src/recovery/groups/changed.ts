/** What the store answered to a merge or a split, as the group or as the error that says what to do. */
import { MakegoodError } from "../../message/errors.ts";
import { isExecuting } from "../candidates/candidate-state.ts";
import type { Records } from "../records.ts";
import type { Group } from "./group.ts";
import type { GroupChanged } from "./group-changes.ts";

export function changedGroup(changed: GroupChanged): Group {
  if (changed.kind === "done") return changed.group;
  if (changed.kind === "not_found") {
    throw new MakegoodError("group_not_found", `There is no group ${changed.groupId}.`, { groupId: changed.groupId });
  }
  if (changed.kind === "version_conflict") {
    throw new MakegoodError("version_conflict", "Another request wrote a rule under the same id: try again.", {});
  }
  throw cannotChange(changed.group);
}

/** Asked before anything is written; the store asks once more. */
export async function refuseExecuting(recovery: Pick<Records, "candidateOf">, group: Group): Promise<void> {
  const latest = await recovery.candidateOf(group.groupId);
  if (latest && isExecuting(latest)) throw cannotChange(group);
}

function cannotChange({ groupId, mergedInto }: Group): MakegoodError {
  const why =
    mergedInto === null
      ? "its candidate is being executed, or what became of its execution is unknown: wait for it, or set its status"
      : `it is part of group ${mergedInto} now`;
  return new MakegoodError("wrong_state", `Group ${groupId} cannot be changed: ${why}.`, { groupId, mergedInto });
}
