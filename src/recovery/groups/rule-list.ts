/**
 * Group rules for people: what was decided, by whom and why, and how to delete a rule. Deleting is about failures to come: what
 * was counted stays where it is, and groups that were merged stay merged.
 */
import { errorText, MakegoodError } from "../../message/errors.ts";
import type { StoredDocument } from "../documents.ts";
import type { Records } from "../records.ts";
import type { Actor, GroupRuleInfo } from "../recovery.ts";
import { dropGroupRule, type GroupRuleBook, readGroupRule } from "./rule-documents.ts";

export async function listGroupRules(
  { documents }: Pick<Records, "documents">,
  book: () => Promise<GroupRuleBook>,
): Promise<GroupRuleInfo[]> {
  const { byId } = await book();
  return (await documents.list("group_rule")).map((stored) => infoOf(stored, byId.has(stored.id)));
}

function infoOf({ id, text, version, actor, at }: StoredDocument, used: boolean): GroupRuleInfo {
  const kept = { id, version, actor, at, used };
  try {
    const { kind, topic, errorCode, templates, words = [], reason } = readGroupRule(text).rule;
    return { ...kept, kind, topic, errorCode, templates, words, reason };
  } catch (error) {
    const why = `it cannot be read: ${errorText(error)}`;
    return { ...kept, kind: null, topic: "", errorCode: "", templates: [], words: [], reason: why };
  }
}

export async function deleteGroupRule(
  { documents }: Pick<Records, "documents">,
  id: string,
  from: number | null,
  actor: Actor,
): Promise<void> {
  const stored = await documents.get("group_rule", id);
  if (stored === null) throw new MakegoodError("rule_not_found", `There is no group rule ${id}.`, { rule: id });
  const version = from ?? stored.version;
  const written = await dropGroupRule(documents, { id, version }, infoOf(stored, false).reason, actor);
  if (written.kind !== "done") {
    const text = `Group rule ${id} has version ${written.version} now, not ${version}: read it again.`;
    throw new MakegoodError("version_conflict", text, { version: written.version });
  }
}
