/**
 * Split by words. The rule's id is made from the group and the words, so that asking twice is one split, and asking again after a kill
 * moves what is left.
 */
import { createHash } from "node:crypto";
import { MakegoodError } from "../../message/errors.ts";
import { isClosed } from "../candidates/candidate-state.ts";
import type { Occurrence } from "../failures/failure.ts";
import { Fingerprints, ruleFingerprint } from "../fingerprint/fingerprint.ts";
import { type GroupRule, RULE_LIMITS, splitRule } from "../fingerprint/group-rules.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import { changedGroup } from "./changed.ts";
import { failureOf } from "./explain.ts";
import type { Group, GroupIdentity } from "./group.ts";
import { refuseFull } from "./merge-rule.ts";
import type { Regroup, RegroupDeps } from "./regroup.ts";
import { dropGroupRule, type GroupRuleBook, groupRuleText, type KeptGroupRule, placeOf } from "./rule-documents.ts";
import { templatesOf } from "./templates.ts";

export interface SplitDeps extends RegroupDeps {
  readonly found: (groupId: number) => Promise<Group>;
}

const PAGE = 200;
/** I10: so often the same words can be split off and merged back. */
const TIMES_MAX = 50;
const OWN_TEMPLATES_MAX = 3;

interface Part {
  readonly rule: GroupRule;
  readonly identity: GroupIdentity;
  readonly known: Group | null;
  /** Rules of the same words whose groups were merged back since: they are taken away, or they would go on deciding. */
  readonly undone: readonly string[];
}

export function createSplit({ recovery, groupRules, ids, found }: SplitDeps): Regroup["split"] {
  async function partOf(group: Group, words: readonly string[], why: string, book: GroupRuleBook): Promise<Part> {
    // What was split off itself is split by its own words and these: the more particular rule wins.
    const own = group.groupRule === null ? undefined : book.byId.get(group.groupRule)?.rule;
    const all = [...new Set([...(own?.words ?? []), ...words])];
    if (all.length > RULE_LIMITS.wordsMax) throw noWords(`are too many: at most ${RULE_LIMITS.wordsMax} in all`);
    const templates = new Set([...(own?.templates ?? []), ...(await templatesOf(recovery, [group], book))]);
    const [template = group.template, ...more] = templates;
    const undone: string[] = [];
    for (let time = 1; time <= TIMES_MAX; time++) {
      const id = splitId(group, words, time);
      const rule: GroupRule = {
        ...splitRule(id, group.topic, group.errorCode, template, all, why),
        templates: [template, ...more],
      };
      // Wherever it happened: a split is about the words, and the rule's group keeps the place of the one it came from.
      const { key, failureMatchId, template: text } = ruleFingerprint(rule, placeOf(group.fingerprint));
      const { topic, errorCode, sink, topFrame } = group;
      const identity: GroupIdentity = {
        fingerprint: key,
        failureMatchId,
        topic,
        sink,
        errorCode,
        topFrame,
        template: text,
        groupRule: id,
      };
      const known = await recovery.groupOf({ fingerprint: key });
      if (known === null || known.fingerprint === key) return { rule, identity, known, undone };
      if (known.groupId !== group.groupId) {
        const detail = `were split off group ${group.groupId} before, and that is part of group ${known.groupId} now`;
        throw noWords(detail);
      }
      undone.push(id);
    }
    throw noWords(`were split off and merged back ${TIMES_MAX} times`);
  }

  return async (groupId, words, why, actor) => {
    const group = await found(groupId);
    const wanted = [...new Set(words.map((word) => word.trim()).filter((word) => word !== ""))];
    if (wanted.length === 0) throw noWords("must name at least one word");
    const book = await groupRules();
    const { rule, identity, known, undone } = await partOf(group, wanted, why, book);
    // Only this rule: whether another one would take it too is not the question here.
    const asked = new Fingerprints({ rules: [rule], scopesMax: 0 });
    const takes = (occurrence: Occurrence): boolean => asked.of(failureOf(group, occurrence)).groupRule === rule.id;
    const sample = known === null ? await someTaken(recovery, group, takes) : [];
    if (known === null && sample.length === 0) {
      throw noWords(`are in no text of group ${groupId} (whole words or phrases, as they are written there)`);
    }
    const before = book.byId.get(rule.id);
    if (before === undefined) refuseFull(book);
    const kept: KeptGroupRule = { rule, target: null, places: [] };
    const provenance = [line("split", actor, { groupId, reason: why, details: { rule: rule.id, words: wanted } })];
    const version = before?.version ?? 0;
    const document = { kind: "group_rule", id: rule.id, text: groupRuleText(kept), version, actor: actor.actor } as const;
    const own = { ...identity, template: ownTemplate(group, sample) ?? identity.template };
    const part = changedGroup(await recovery.split({ groupId, identity: own, document, provenance }));
    for (const id of undone) {
      const old = { id, version: book.byId.get(id)?.version ?? 0 };
      await dropGroupRule(recovery.documents, old, `merged back, and split off again as ${rule.id}`, actor);
    }
    const moved = await move(recovery, group, part, takes);
    await retitle(recovery, group, part);
    const latest = await recovery.candidateOf(part.groupId);
    if (latest === null || (isClosed(latest) && moved > 0)) {
      await recovery.reopen(part.groupId, { ids }, [line("reopened", actor, { groupId: part.groupId, reason: why })]);
    }
    return { group: (await recovery.group(part.groupId)) ?? part, moved };
  };
}

function splitId({ fingerprint }: Group, words: readonly string[], time: number): string {
  const text = JSON.stringify([fingerprint, [...words].sort()]);
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 24);
  return time === 1 ? `split-${digest}` : `split-${digest}-${time}`;
}

/** Brings over what the rule takes, a page at a time; newest first, so what arrives meanwhile is placed by the rule already. */
async function move(
  recovery: Pick<Records, "occurrences" | "moveOccurrences">,
  from: Group,
  to: Group,
  takes: (occurrence: Occurrence) => boolean,
): Promise<number> {
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

/** What stays behind after its own template left reads like what is there now, not like the part that went. */
async function retitle(recovery: Pick<Records, "occurrences" | "moveOccurrences">, from: Group, to: Group): Promise<void> {
  const { data } = await recovery.occurrences(from.groupId, { limit: PAGE });
  const templates = from.template.split(" | ");
  const asked = new Fingerprints({
    rules: [{ ...PROBE, topic: from.topic, errorCode: from.errorCode, templates }],
    scopesMax: 0,
  });
  if (data.some((each) => asked.of(failureOf(from, each)).groupRule === PROBE.id)) return;
  const left = ownTemplate(from, data);
  if (left !== null) await recovery.moveOccurrences(from.groupId, to.groupId, [], { left });
}

const PROBE = { id: "template", kind: "merge", reason: "" } as const;

async function someTaken(
  recovery: Pick<Records, "occurrences">,
  group: Group,
  takes: (occurrence: Occurrence) => boolean,
): Promise<readonly Occurrence[]> {
  let cursor: string | undefined;
  do {
    const page = await recovery.occurrences(group.groupId, { limit: PAGE, cursor });
    const taken = page.data.filter(takes);
    if (taken.length > 0) return taken;
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return [];
}

/** What those that are split off have in common, for people to read: the rule goes by the words. Null: too many things. */
function ownTemplate(group: Group, sample: readonly Occurrence[]): string | null {
  const learned = new Fingerprints();
  const failures = sample.map((each) => failureOf(group, each));
  for (const failure of failures) learned.of(failure);
  const templates = new Set(failures.map((failure) => learned.of(failure).template));
  return templates.size === 0 || templates.size > OWN_TEMPLATES_MAX ? null : [...templates].join(" | ");
}

function noWords(detail: string): MakegoodError {
  return new MakegoodError("invalid_request", `The words ${detail}.`, { errors: [{ field: "words", detail }] });
}
