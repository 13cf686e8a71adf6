/** The templates that stand for groups: their own, those of groups merged into them, or those of the merge rule that made them. */

import type { Records } from "../records.ts";
import type { Group } from "./group.ts";
import type { GroupRuleBook } from "./rule-documents.ts";

const PAGE = 200;

/** Of groups of one topic and code. */
export async function templatesOf(
  recovery: Pick<Records, "groups">,
  groups: readonly Group[],
  book: GroupRuleBook,
): Promise<string[]> {
  const templates = new Set<string>();
  const add = ({ groupRule, template }: Group): void => {
    const kept = groupRule === null ? undefined : book.byId.get(groupRule);
    // What was split off shares its template with what stayed: its own rule and its pointer lead it, not the template.
    if (kept?.rule.kind === "split") return;
    for (const each of kept?.rule.templates ?? [template]) templates.add(each);
  };
  groups.forEach(add);
  const [first] = groups;
  if (first === undefined) return [];
  const ids = new Set(groups.map(({ groupId }) => groupId));
  const { topic, errorCode } = first;
  let cursor: string | undefined;
  do {
    const page = await recovery.groups({ topic, errorCode, merged: true, limit: PAGE, cursor });
    for (const each of page.data) if (each.mergedInto !== null && ids.has(each.mergedInto)) add(each);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return [...templates];
}
