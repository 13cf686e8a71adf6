/**
 * Group rules as documents: what people merged and split, for the future. A rule of a merge also names the group that the failures go
 * to, or the next one of them would open a group of the rule's own beside it.
 */
import { errorText } from "../../message/errors.ts";
import type { Events } from "../../observe/events.ts";
import type { DocumentStore } from "../../store/documents.ts";
import type { GroupIdentity } from "../../store/recovery.ts";
import { type GroupRule, type GroupRules, RuleTable } from "../fingerprint/group-rules.ts";

export interface KeptGroupRule {
  readonly rule: GroupRule;
  /** Where what it matches goes; null: the group of the rule itself (a split). */
  readonly target: GroupIdentity | null;
  /** The places (sink and frame, by the last part of a fingerprint) that were merged; elsewhere the rule has a group of its own. */
  readonly places: readonly string[];
}

export interface GroupRuleBook {
  readonly rules: GroupRules;
  readonly byId: ReadonlyMap<string, KeptGroupRule>;
}

export function placeOf(fingerprint: string): string {
  return fingerprint.split(".")[2] ?? "";
}

const EMPTY: GroupRuleBook = { rules: [], byId: new Map() };

/** The group rules as they stand now; read again only when one was written. */
export function createGroupRules(documents: DocumentStore, events: Events): () => Promise<GroupRuleBook> {
  let revision = 0;
  let book = EMPTY;
  return async () => {
    const now = await documents.revision("group_rule");
    if (now === revision) return book;
    const byId = new Map<string, KeptGroupRule>();
    for (const { id, text } of await documents.list("group_rule")) {
      try {
        const kept = JSON.parse(text) as KeptGroupRule;
        new RuleTable([kept.rule]);
        byId.set(id, kept);
      } catch (error) {
        // One that cannot be read must not stop the others: its failures are grouped as if nobody had decided.
        events.emit({ type: "lifecycle", what: "recovery_group_rule_unreadable", detail: { rule: id, error: errorText(error) } });
      }
    }
    book = { rules: [...byId.values()].map(({ rule }) => rule), byId };
    revision = now;
    return book;
  };
}
