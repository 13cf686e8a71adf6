/**
 * Merge and split by hand. Both are a decision for the future as well: a rule is written in the same write, and what comes next goes
 * where the person said. No occurrence is lost or counted twice; what was approved for either group has lapsed.
 */
import { MakegoodError } from "../../message/errors.ts";
import type { GroupChanged } from "../../store/group-changes.ts";
import type { Group, GroupIdentity, IngestRules, Occurrence, RecoveryStore } from "../../store/recovery.ts";
import { Fingerprints } from "../fingerprint/fingerprint.ts";
import { type GroupRule, mergeRule, splitRule } from "../fingerprint/group-rules.ts";
import { line } from "../provenance.ts";
import type { Actor } from "../recovery.ts";
import { failureOf } from "./explain.ts";
import { type GroupRuleBook, type KeptGroupRule, placeOf } from "./rule-documents.ts";

export interface RegroupDeps {
  readonly recovery: RecoveryStore;
  readonly groupRules: () => Promise<GroupRuleBook>;
  readonly rules: IngestRules;
  readonly ids: () => string;
}

export interface Regroup {
  merge(into: number, from: readonly number[], why: string, actor: Actor): Promise<Group>;
  split(groupId: number, words: readonly string[], why: string, actor: Actor): Promise<{ group: Group; moved: number }>;
}

const PAGE = 200;
const MERGE_MAX = 100;

export function createRegroup({ recovery, groupRules, rules, ids }: RegroupDeps): Regroup {
  async function found(groupId: number): Promise<Group> {
    const group = await recovery.group(groupId);
    if (group === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
    if (group.mergedInto === null) return group;
    const text = `Group ${groupId} is part of group ${group.mergedInto} now: name that one.`;
    throw new MakegoodError("wrong_state", text, { groupId, mergedInto: group.mergedInto });
  }

  /** The templates that stand for a group: its own, those of groups merged into it, or those of the rule that made it. */
  async function templatesOf(group: Group, book: GroupRuleBook): Promise<string[]> {
    const templates = new Set<string>();
    const add = ({ rule, template }: Group): void => {
      const kept = rule === null ? undefined : book.byId.get(rule);
      for (const each of kept?.rule.templates ?? [template]) templates.add(each);
    };
    add(group);
    let cursor: string | undefined;
    do {
      const page = await recovery.groups({ topic: group.topic, code: group.code, merged: true, limit: PAGE, cursor });
      for (const each of page.data) if (each.mergedInto === group.groupId) add(each);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return [...templates];
  }

  function document(kept: KeptGroupRule, actor: Actor) {
    const write = { kind: "group_rule", id: kept.rule.id, text: JSON.stringify(kept), version: 0, actor: actor.actor } as const;
    return write;
  }

  async function mergeOne(into: Group, from: Group, why: string, actor: Actor): Promise<Group> {
    const book = await groupRules();
    const sameScope = from.topic === into.topic && from.code === into.code;
    const templates = sameScope ? [...new Set([...(await templatesOf(into, book)), ...(await templatesOf(from, book))])] : [];
    // Across topics or codes the pointer alone decides: the same fingerprint goes the same way for ever.
    const rule = templates.length > 1 ? mergeRule(`merge-${ids()}`, into.topic, into.code, templates, why) : null;
    const places = [...new Set([placeOf(into.fingerprint), placeOf(from.fingerprint)])];
    const kept = rule && { rule, target: identityOf(into), places };
    const details = { from: from.groupId, into: into.groupId, rule: rule?.id ?? null };
    const changed = await recovery.merge({
      from: from.groupId,
      into: into.groupId,
      ...(kept ? { document: document(kept, actor) } : {}),
      provenance: [line("merged", actor, { groupId: into.groupId, reason: why, details })],
    });
    return changedGroup(changed);
  }

  /** Brings over what the rule takes, a page at a time; newest first, so what arrives meanwhile is placed by the rule already. */
  async function move(from: Group, to: Group, takes: (occurrence: Occurrence) => boolean): Promise<number> {
    let moved = 0;
    let cursor: string | undefined;
    do {
      const page = await recovery.occurrences(from.groupId, { limit: PAGE, cursor });
      const mine = page.data.filter(takes).map(({ occurrenceId }) => occurrenceId);
      if (mine.length > 0) moved += await recovery.moveOccurrences(from.groupId, to.groupId, mine);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return moved;
  }

  async function firstTaken(group: Group, takes: (occurrence: Occurrence) => boolean): Promise<Occurrence | null> {
    let cursor: string | undefined;
    do {
      const page = await recovery.occurrences(group.groupId, { limit: PAGE, cursor });
      const first = page.data.find(takes);
      if (first) return first;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return null;
  }

  return {
    async merge(into, from, why, actor) {
      const others = [...new Set(from)];
      if (others.length === 0 || others.length > MERGE_MAX || others.includes(into)) {
        const detail = `must name from 1 to ${MERGE_MAX} other groups`;
        throw new MakegoodError("invalid_request", `from ${detail}.`, { errors: [{ field: "from", detail }] });
      }
      let group = await found(into);
      const parts: Group[] = [];
      for (const each of others) parts.push(await found(each));
      for (const part of parts) group = await mergeOne(group, part, why, actor);
      return group;
    },
    async split(groupId, words, why, actor) {
      const group = await found(groupId);
      const wanted = words.map((word) => word.trim()).filter((word) => word !== "");
      if (wanted.length === 0) throw noWords("must name at least one word");
      const [template = group.template, ...more] = await templatesOf(group, await groupRules());
      const made = splitRule(`split-${ids()}`, group.topic, group.code, template, wanted, why);
      const rule: GroupRule = { ...made, templates: [template, ...more] };
      // Only this rule: whether another one would take it too is not the question here.
      const asked = new Fingerprints({ rules: [rule], scopesMax: 0 });
      const takes = (occurrence: Occurrence): boolean => asked.of(failureOf(group, occurrence)).rule === rule.id;
      const first = await firstTaken(group, takes);
      if (first === null) throw noWords(`are in no text of group ${groupId} (whole words, as they are written there)`);
      const { key, matchId, template: text } = asked.of(failureOf(group, first));
      // Wherever it happened: a split is about the words, and the rule's group keeps the place of the one it came from.
      const place = { sink: group.sink, frame: group.frame };
      const identity: GroupIdentity = {
        fingerprint: key,
        matchId,
        topic: group.topic,
        code: group.code,
        ...place,
        template: text,
        rule: rule.id,
      };
      const kept = { rule, target: null, places: [] };
      const provenance = [line("split", actor, { groupId, reason: why, details: { rule: rule.id, words: wanted } })];
      const changed = await recovery.split({ groupId, identity, document: document(kept, actor), provenance });
      const part = changedGroup(changed);
      const moved = await move(group, part, takes);
      await recovery.reopen(part.groupId, rules, [line("reopened", actor, { groupId: part.groupId, reason: why })]);
      return { group: (await recovery.group(part.groupId)) ?? part, moved };
    },
  };
}

function identityOf({ fingerprint, matchId, topic, sink, code, template, frame, rule }: Group): GroupIdentity {
  return { fingerprint, matchId, topic, sink, code, template, frame, rule };
}

function noWords(detail: string): MakegoodError {
  return new MakegoodError("invalid_request", `The words ${detail}.`, { errors: [{ field: "words", detail }] });
}

function changedGroup(changed: GroupChanged): Group {
  if (changed.kind === "done") return changed.group;
  if (changed.kind === "not_found") {
    throw new MakegoodError("group_not_found", `There is no group ${changed.groupId}.`, { groupId: changed.groupId });
  }
  if (changed.kind === "version_conflict") {
    throw new MakegoodError("version_conflict", "Somebody else wrote a rule under the same id: try again.", {});
  }
  const { groupId, mergedInto } = changed.group;
  const why = mergedInto === null ? "its candidate is being executed: wait for it" : `it is part of group ${mergedInto} now`;
  throw new MakegoodError("wrong_state", `Group ${groupId} cannot be changed: ${why}.`, { groupId, mergedInto });
}
