/** Merge by hand, a decision for the future as well: a rule is in the same write. Asked for again after a kill, it does what is left. */
import { MakegoodError } from "../../message/errors.ts";
import type { Candidate } from "../candidates/candidate.ts";
import { isClosed, isExecuting } from "../candidates/candidate-state.ts";
import { checkedRule, RULE_LIMITS } from "../fingerprint/group-rules.ts";
import { everyPage } from "../pages.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import { type Group, identityOf } from "./group.ts";
import type { GroupChanged } from "./group-writes.ts";
import { existingGroup } from "./read.ts";
import { dropGroupRule, type GroupRuleBook, groupRuleText, placeOf } from "./rule-documents.ts";

export interface RegroupDeps {
  readonly prepare: () => Promise<void>;
  readonly recovery: Records;
  readonly groupRules: () => Promise<GroupRuleBook>;
  readonly ids: () => string;
}

const MERGE_MAX = 100;

export async function mergeGroups(deps: RegroupDeps, into: number, from: readonly number[], why: string, actor: Actor) {
  await deps.prepare();
  const others = [...new Set(from)];
  if (others.length === 0 || others.length > MERGE_MAX || others.includes(into)) {
    const detail = `must name from 1 to ${MERGE_MAX} other groups`;
    throw new MakegoodError("invalid_request", `from ${detail}.`, { errors: [{ field: "from", detail }] });
  }
  const group = await unmergedGroup(deps.recovery, into);
  const parts: Group[] = [];
  for (const each of others) parts.push(await unmergedGroup(deps.recovery, each, into));
  const left = parts.filter(({ mergedInto }) => mergedInto === null);
  return left.length === 0 ? group : merge(deps, group, left, why, actor);
}

async function merge(deps: RegroupDeps, into: Group, parts: readonly Group[], why: string, actor: Actor): Promise<Group> {
  const { recovery, groupRules, ids } = deps;
  const candidates: (Candidate | null)[] = [];
  for (const each of [into, ...parts]) {
    const latest = await recovery.candidateOf(each.groupId);
    // Before anything is written; the store asks once more.
    if (latest && isExecuting(latest)) throw cannotChange(each);
    candidates.push(latest);
  }
  const book = await groupRules();
  // Across topics or codes the pointer alone decides, also for what the template becomes (join-groups.ts).
  const alike = parts.filter(({ topic, errorCode }) => topic === into.topic && errorCode === into.errorCode);
  const templates = await templatesOf(recovery, [into, ...alike], book);
  const decision = alike.length > 0 ? mergeDecision(book, into, alike, templates, why, ids) : null;
  const [own, ...theirs] = candidates;
  const open = parts.some(({ openMessages }) => openMessages > 0) || theirs.some((one) => one && !isClosed(one));
  // The merge ends the suggestions of the others: their open failures need one too.
  if (own && isClosed(own) && open) {
    await recovery.reopen(into.groupId, { ids }, [line("reopened", actor, { groupId: into.groupId, reason: why })]);
  }
  let group = into;
  for (const [i, { groupId: from }] of parts.entries()) {
    const details = { from, into: into.groupId, rule: decision?.id ?? null };
    const provenance = [line("merged", actor, { groupId: into.groupId, reason: why, details })];
    // One rule for all, with the first: from then on new failures go where the person said.
    const document = i === 0 && decision ? { ...decision.document, actor: actor.actor } : undefined;
    group = changedGroup(await recovery.merge({ from, into: into.groupId, document, provenance }));
  }
  for (const [id, version] of decision?.replaced ?? []) {
    await dropGroupRule(recovery.documents, id, version, `contained in ${decision?.id}`, actor);
  }
  return group;
}

/**
 * One rule for all groups of a merge; null: there is one template only, and its fingerprint is enough. A rule that it contains is extended
 * instead of being joined by another, and further ones are `replaced`, so that merging on and on does not fill the list. Pure.
 */
export function mergeDecision(
  book: GroupRuleBook,
  into: Group,
  parts: readonly Group[],
  templates: readonly string[],
  why: string,
  ids: () => string,
) {
  if (templates.length < 2) return null;
  if (templates.length > RULE_LIMITS.templatesMax) {
    const text = `The merge would have ${templates.length} templates, more than a rule takes (${RULE_LIMITS.templatesMax}): merge fewer groups.`;
    throw new MakegoodError("invalid_request", text, { errors: [{ field: "from", detail: "has too many templates" }] });
  }
  const { topic, errorCode } = into;
  const covered = new Set(templates);
  const contained = [...book.byId].filter(([, { rule }]) => {
    const here = rule.kind === "merge" && rule.topic === topic && rule.errorCode === errorCode;
    return here && rule.templates.every((each) => covered.has(each));
  });
  const [first, ...more] = contained;
  if (first === undefined) refuseFull(book);
  const id = first?.[0] ?? `merge-${ids()}`;
  const rule = checkedRule({ id, kind: "merge", topic, errorCode, templates, reason: why });
  const groupPlaces = [into, ...parts].map(({ fingerprint }) => placeOf(fingerprint));
  const places = [...new Set([...groupPlaces, ...contained.flatMap(([, kept]) => kept.places)])];
  const text = groupRuleText({ rule, target: identityOf(into), places });
  return {
    id,
    document: { kind: "group_rule", id, text, version: first?.[1].version ?? 0 } as const,
    replaced: more.map(([other, { version }]) => [other, version] as const),
  };
}

export function refuseFull({ byId }: GroupRuleBook): void {
  if (byId.size < RULE_LIMITS.rulesMax) return;
  const text = `There are ${RULE_LIMITS.rulesMax} group rules, as many as can be used: delete some that are not needed any more.`;
  throw new MakegoodError("wrong_state", text, { rulesMax: RULE_LIMITS.rulesMax });
}

/** Of groups of one topic and code: their own templates, those of groups merged into them, or those of the merge rule that made them. */
export async function templatesOf(recovery: Pick<Records, "groups">, groups: readonly [Group, ...Group[]], book: GroupRuleBook) {
  const templates = new Set<string>();
  const add = ({ groupRule, template }: Group): void => {
    const kept = groupRule === null ? undefined : book.byId.get(groupRule);
    // What was split off shares its template with what stayed: its own rule and its pointer lead it, not the template.
    if (kept?.rule.kind === "split") return;
    for (const each of kept?.rule.templates ?? [template]) templates.add(each);
  };
  groups.forEach(add);
  const ids = new Set(groups.map(({ groupId }) => groupId));
  const [{ topic, errorCode }] = groups;
  for await (const page of everyPage((at) => recovery.groups({ topic, errorCode, merged: true, ...at }))) {
    for (const each of page) if (each.mergedInto !== null && ids.has(each.mergedInto)) add(each);
  }
  return [...templates];
}

/** `partOf`: it may be part of that one already. */
export async function unmergedGroup(recovery: Pick<Records, "group">, groupId: number, partOf?: number): Promise<Group> {
  const group = await existingGroup(recovery, groupId);
  if (group.mergedInto === null || group.mergedInto === partOf) return group;
  const text = `Group ${groupId} is part of group ${group.mergedInto} now: name that one.`;
  throw new MakegoodError("wrong_state", text, { groupId, mergedInto: group.mergedInto });
}

/** What the store answered, as the group or as the error that says what to do. */
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

function cannotChange({ groupId, mergedInto }: Group): MakegoodError {
  const why =
    mergedInto === null
      ? "its candidate is being executed, or what became of its execution is unknown: wait for it, or set its status"
      : `it is part of group ${mergedInto} now`;
  return new MakegoodError("wrong_state", `Group ${groupId} cannot be changed: ${why}.`, { groupId, mergedInto });
}
