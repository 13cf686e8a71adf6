/** Group rules as documents: what people merged and split, for the future. */
import { errorText, MakegoodError } from "../../message/errors.ts";
import { withNames } from "../../message/json.ts";
import type { Events } from "../../observe/events.ts";
import type { Documents, StoredDocument } from "../documents.ts";
import { type GroupRule, type GroupRules, RULE_LIMITS, RuleTable } from "../fingerprint/group-rules.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import type { GroupIdentity } from "./group.ts";

export interface KeptGroupRule {
  readonly rule: GroupRule;
  /** Where what a merge matches goes, or the next one would open a group of the rule's own beside it; null: there (a split). */
  readonly target: GroupIdentity | null;
  /** The places (sink and frame, by the last part of a fingerprint) that were merged; elsewhere the rule has a group of its own. */
  readonly places: readonly string[];
}

export interface GroupRuleBook {
  readonly rules: GroupRules;
  readonly byId: ReadonlyMap<string, KeptGroupRule & { readonly version: number }>;
}

export const placeOf = (fingerprint: string): string => fingerprint.split(".")[2] ?? "";

/** Documents have the names they began with: a rule that was kept then is read now. */
const WRITTEN = { failureMatchId: "matchId", errorCode: "code", topFrame: "frame", groupRule: "rule", reason: "why" };
const READ = Object.fromEntries(Object.entries(WRITTEN).map(([name, written]) => [written, name]));

export function groupRuleText({ rule, target, places }: KeptGroupRule): string {
  return JSON.stringify({ rule: withNames(rule, WRITTEN), target: target && withNames(target, WRITTEN), places });
}

/** Throws for what is no group rule. */
export function readGroupRule(text: string): KeptGroupRule {
  const kept = JSON.parse(text) as { readonly rule: object; readonly target: object | null; readonly places: unknown };
  const rule = withNames(kept.rule, READ) as unknown as GroupRule;
  new RuleTable([rule]);
  if (!Array.isArray(kept.places)) throw new TypeError("it names no places");
  const target = kept.target && (withNames(kept.target, READ) as unknown as GroupIdentity);
  return { rule, target, places: kept.places };
}

/** The group rules as they stand now; read again only when one was written. It never throws for what a rule says. */
export function createGroupRules(documents: Documents, events: Events): () => Promise<GroupRuleBook> {
  let revision = 0;
  let book: GroupRuleBook = { rules: [], byId: new Map() };
  return async () => {
    const now = await documents.revision("group_rule");
    if (now === revision) return book;
    const byId = new Map<string, KeptGroupRule & { version: number }>();
    let over = 0;
    for (const { id, text, version } of await documents.list("group_rule")) {
      try {
        const kept = readGroupRule(text);
        if (byId.size < RULE_LIMITS.rulesMax) byId.set(id, { ...kept, version });
        else over++;
      } catch (error) {
        // One that cannot be read must not stop the others: its failures are grouped as if nobody had decided.
        events.emit({ type: "lifecycle", what: "recovery_group_rule_unreadable", detail: { rule: id, error: errorText(error) } });
      }
    }
    if (over > 0) {
      const detail = { notUsed: over, rulesMax: RULE_LIMITS.rulesMax };
      events.emit({ type: "lifecycle", what: "recovery_group_rules_over_limit", detail });
    }
    book = { rules: [...byId.values()].map(({ rule }) => rule), byId };
    revision = now;
    return book;
  };
}

/** Takes a rule away, on record in the same write. */
export function dropGroupRule({ put }: Pick<Documents, "put">, id: string, version: number, reason: string, actor: Actor) {
  const provenance = [line("group_rule_deleted", actor, { ruleId: id, reason, details: { version } })];
  return put({ kind: "group_rule", id, text: null, version, actor: actor.actor, provenance });
}

/** For people: what was decided, by whom and why. */
export async function listGroupRules({ documents }: Pick<Records, "documents">, book: () => Promise<GroupRuleBook>) {
  const { byId } = await book();
  return (await documents.list("group_rule")).map((stored) => infoOf(stored, byId.has(stored.id)));
}

/** Not `used`: it is past the limit of rules, or cannot be read, and then it has no kind. */
function infoOf({ id, text, version, actor, at }: StoredDocument, used: boolean) {
  const kept = { id, version, actor, at, used };
  try {
    const { kind, topic, errorCode, templates, words = [], reason } = readGroupRule(text).rule;
    return { ...kept, kind, topic, errorCode, templates, words, reason };
  } catch (error) {
    const why = `it cannot be read: ${errorText(error)}`;
    return { ...kept, kind: null, topic: "", errorCode: "", templates: [], words: [], reason: why };
  }
}

/** About failures to come: what was counted stays where it is, and groups that were merged stay merged. `from`: its version; null: any. */
export async function deleteGroupRule({ documents }: Records, id: string, from: number | null, actor: Actor): Promise<void> {
  const stored = await documents.get("group_rule", id);
  if (stored === null) throw new MakegoodError("rule_not_found", `There is no group rule ${id}.`, { rule: id });
  const version = from ?? stored.version;
  const written = await dropGroupRule(documents, id, version, infoOf(stored, false).reason, actor);
  if (written.kind !== "done") {
    const text = `Group rule ${id} has version ${written.version} now, not ${version}: read it again.`;
    throw new MakegoodError("version_conflict", text, { version: written.version });
  }
}
