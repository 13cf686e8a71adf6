/**
 * The rule that a merge leaves for the future: one for all groups of the merge. A rule that it contains is extended instead of being
 * joined by another, and further ones are taken away after it, so that merging on and on does not fill the list.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { DocumentWrite } from "../documents.ts";
import { mergeRule, RULE_LIMITS } from "../fingerprint/group-rules.ts";
import { type Group, identityOf } from "./group.ts";
import { type GroupRuleBook, groupRuleText, type KeptGroupRule, placeOf } from "./rule-documents.ts";

export interface MergeDecision {
  readonly id: string;
  readonly document: Omit<DocumentWrite, "actor">;
  /** Rules that say nothing more than this one, with their versions. */
  readonly replaced: readonly (readonly [id: string, version: number])[];
}

/** Null: there is one template only, and its fingerprint is enough. Pure. */
export function mergeDecision(
  book: GroupRuleBook,
  into: Group,
  parts: readonly Group[],
  templates: readonly string[],
  why: string,
  ids: () => string,
): MergeDecision | null {
  if (templates.length < 2) return null;
  if (templates.length > RULE_LIMITS.templatesMax) {
    const text = `The merge would have ${templates.length} templates, more than a rule takes (${RULE_LIMITS.templatesMax}): merge fewer groups.`;
    throw new MakegoodError("invalid_request", text, { errors: [{ field: "from", detail: "has too many templates" }] });
  }
  const { topic, errorCode } = into;
  const covered = new Set(templates);
  const contained = [...book.byId].filter(
    ([, { rule }]) =>
      rule.kind === "merge" &&
      rule.topic === topic &&
      rule.errorCode === errorCode &&
      rule.templates.every((each) => covered.has(each)),
  );
  const [first, ...more] = contained;
  if (first === undefined) refuseFull(book);
  const id = first?.[0] ?? `merge-${ids()}`;
  const rule = mergeRule(id, topic, errorCode, templates, why);
  const groupPlaces = [into, ...parts].map(({ fingerprint }) => placeOf(fingerprint));
  const places = [...new Set([...groupPlaces, ...contained.flatMap(([, kept]) => kept.places)])];
  const kept: KeptGroupRule = { rule, target: identityOf(into), places };
  return {
    id,
    document: { kind: "group_rule", id, text: groupRuleText(kept), version: first?.[1].version ?? 0 },
    replaced: more.map(([other, { version }]) => [other, version] as const),
  };
}

export function refuseFull({ byId }: GroupRuleBook): void {
  if (byId.size < RULE_LIMITS.rulesMax) return;
  const text = `There are ${RULE_LIMITS.rulesMax} group rules, as many as can be used: delete some that are not needed any more.`;
  throw new MakegoodError("wrong_state", text, { rulesMax: RULE_LIMITS.rulesMax });
}
