/**
 * Merge and split by hand. Both are a decision for the future as well: a rule is written in the same write, and what comes next goes
 * where the person said. No occurrence is lost or counted twice; what was approved for either group has lapsed. Either can be asked
 * for again after its process was killed, and then does what was left to do.
 */
import { MakegoodError } from "../../message/errors.ts";
import { isClosed } from "../candidates/candidate-state.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import { changedGroup, refuseExecuting } from "./changed.ts";
import type { Group } from "./group.ts";
import { mergeDecision } from "./merge-rule.ts";
import { dropGroupRule, type GroupRuleBook } from "./rule-documents.ts";
import { createSplit } from "./split.ts";
import { templatesOf } from "./templates.ts";

export interface RegroupDeps {
  readonly recovery: Records;
  readonly groupRules: () => Promise<GroupRuleBook>;
  readonly ids: () => string;
}

export interface Regroup {
  merge(into: number, from: readonly number[], why: string, actor: Actor): Promise<Group>;
  split(groupId: number, words: readonly string[], why: string, actor: Actor): Promise<{ group: Group; moved: number }>;
}

const MERGE_MAX = 100;

export function createRegroup(deps: RegroupDeps): Regroup {
  const { recovery, groupRules, ids } = deps;

  async function found(groupId: number, partOf?: number): Promise<Group> {
    const group = await recovery.group(groupId);
    if (group === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
    if (group.mergedInto === null || group.mergedInto === partOf) return group;
    const text = `Group ${groupId} is part of group ${group.mergedInto} now: name that one.`;
    throw new MakegoodError("wrong_state", text, { groupId, mergedInto: group.mergedInto });
  }

  /** Before the merge, which ends the suggestions of the others: their open failures need a suggestion too. */
  async function reopen(into: Group, parts: readonly Group[], why: string, actor: Actor): Promise<void> {
    const latest = await recovery.candidateOf(into.groupId);
    if (latest === null || !isClosed(latest)) return;
    let open = parts.some(({ openMessages }) => openMessages > 0);
    for (const { groupId } of open ? [] : parts) {
      const theirs = await recovery.candidateOf(groupId);
      open ||= theirs !== null && !isClosed(theirs);
    }
    const { groupId } = into;
    if (open) await recovery.reopen(groupId, { ids }, [line("reopened", actor, { groupId, reason: why })]);
  }

  async function merge(into: Group, parts: readonly Group[], why: string, actor: Actor): Promise<Group> {
    for (const each of [into, ...parts]) await refuseExecuting(recovery, each);
    const book = await groupRules();
    // Across topics or codes the pointer alone decides, also for what the template becomes (join-groups.ts).
    const alike = parts.filter(({ topic, errorCode }) => topic === into.topic && errorCode === into.errorCode);
    const templates = await templatesOf(recovery, [into, ...alike], book);
    const decision = alike.length > 0 ? mergeDecision(book, into, alike, templates, why, ids) : null;
    await reopen(into, parts, why, actor);
    let group = into;
    for (const [i, { groupId: from }] of parts.entries()) {
      const details = { from, into: into.groupId, rule: decision?.id ?? null };
      const provenance = [line("merged", actor, { groupId: into.groupId, reason: why, details })];
      // One rule for all, with the first: from then on new failures go where the person said.
      const document = i === 0 && decision ? { ...decision.document, actor: actor.actor } : undefined;
      group = changedGroup(await recovery.merge({ from, into: into.groupId, document, provenance }));
    }
    for (const [id, version] of decision?.replaced ?? []) {
      await dropGroupRule(recovery.documents, { id, version }, `contained in ${decision?.id}`, actor);
    }
    return group;
  }

  return {
    async merge(into, from, why, actor) {
      const others = [...new Set(from)];
      if (others.length === 0 || others.length > MERGE_MAX || others.includes(into)) {
        const detail = `must name from 1 to ${MERGE_MAX} other groups`;
        throw new MakegoodError("invalid_request", `from ${detail}.`, { errors: [{ field: "from", detail }] });
      }
      const group = await found(into);
      const parts: Group[] = [];
      for (const each of others) parts.push(await found(each, into));
      const left = parts.filter(({ mergedInto }) => mergedInto === null);
      return left.length === 0 ? group : merge(group, left, why, actor);
    },
    split: createSplit({ ...deps, found }),
  };
}
