/** Groups as people see them: with their candidate, their newest occurrences, and why their failures are together. */
import { MakegoodError } from "../../message/errors.ts";
import type { FailurePlaces } from "../failures/place-failures.ts";
import type { Records } from "../records.ts";
import type { GroupDetail } from "../recovery.ts";
import { explainGroup } from "./explain.ts";
import type { Group } from "./group.ts";
import type { GroupRuleBook } from "./rule-documents.ts";

export interface GroupDetailDeps {
  readonly recovery: Pick<Records, "group" | "candidateOf" | "occurrences">;
  readonly places: Pick<FailurePlaces, "trial">;
  readonly groupRules: () => Promise<GroupRuleBook>;
}

const NEWEST_OCCURRENCES = 20;

export async function existingGroup(recovery: Pick<Records, "group">, groupId: number): Promise<Group> {
  const group = await recovery.group(groupId);
  if (group === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
  return group;
}

export async function groupDetail({ recovery, places, groupRules }: GroupDetailDeps, groupId: number): Promise<GroupDetail> {
  const group = await existingGroup(recovery, groupId);
  const [candidate, { data: occurrences }, book] = await Promise.all([
    recovery.candidateOf(groupId),
    recovery.occurrences(groupId, { limit: NEWEST_OCCURRENCES }),
    groupRules(),
  ]);
  const rule = group.groupRule === null ? undefined : book.byId.get(group.groupRule);
  const fingerprints = await places.trial(group);
  return { group, candidate, occurrences, why: explainGroup(group, occurrences, fingerprints, rule) };
}
