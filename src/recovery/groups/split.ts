/** Split by words. The rule's id is made of the group and the words: asked for again after a kill, it moves what is left. */
import { createHash } from "node:crypto";
import { MakegoodError } from "../../message/errors.ts";
import { isClosed } from "../candidates/candidate-state.ts";
import { failureOf, type Occurrence } from "../failures/failure.ts";
import { Fingerprints, ruleFingerprint } from "../fingerprint/fingerprint.ts";
import { checkedRule, type GroupRule, RULE_LIMITS } from "../fingerprint/group-rules.ts";
import { everyPage } from "../pages.ts";
import { line } from "../provenance.ts";
import type { Records } from "../records.ts";
import type { Actor } from "../recovery.ts";
import { type Group, type GroupIdentity, identityOf } from "./group.ts";
import { changedGroup, type RegroupDeps, refuseFull, templatesOf, unmergedGroup } from "./merge.ts";
import { dropGroupRule, type GroupRuleBook, groupRuleText, placeOf } from "./rule-documents.ts";

/** I10: so often the same words can be split off and merged back. */
const TIMES_MAX = 50;
const OWN_TEMPLATES_MAX = 3;
/** So many of what stays behind say how it reads from now on. */
const LEFT_READ = 200;

/** What fits the group's template and contains all these words becomes a group of its own. */
export async function splitGroup(deps: RegroupDeps, groupId: number, words: readonly string[], why: string, actor: Actor) {
  const { recovery, ids } = deps;
  await deps.prepare();
  const group = await unmergedGroup(recovery, groupId);
  const wanted = [...new Set(words.map((word) => word.trim()).filter((word) => word !== ""))];
  if (wanted.length === 0) throw noWords("must name at least one word");
  const book = await deps.groupRules();
  const { rule, identity, known, undone } = await partOf(recovery, group, wanted, why, book);
  const takes = takenBy(group, rule);
  const sample = known === null ? await someTaken(recovery, group, takes) : [];
  if (known === null && sample.length === 0) {
    throw noWords(`are in no text of group ${groupId} (whole words or phrases, as they are written there)`);
  }
  const before = book.byId.get(rule.id);
  if (before === undefined) refuseFull(book);
  const text = groupRuleText({ rule, target: null, places: [] });
  const provenance = [line("split", actor, { groupId, reason: why, details: { rule: rule.id, words: wanted } })];
  const document = { kind: "group_rule", id: rule.id, text, version: before?.version ?? 0, actor: actor.actor } as const;
  const own = { ...identity, template: ownTemplate(group, sample) ?? identity.template };
  const part = changedGroup(await recovery.split({ groupId, identity: own, document, provenance }));
  for (const id of undone) {
    const again = `merged back, and split off again as ${rule.id}`;
    await dropGroupRule(recovery.documents, id, book.byId.get(id)?.version ?? 0, again, actor);
  }
  const moved = await move(recovery, group, part, takes);
  await retitle(recovery, group, part);
  const latest = await recovery.candidateOf(part.groupId);
  if (latest === null || (isClosed(latest) && moved > 0)) {
    await recovery.reopen(part.groupId, { ids }, [line("reopened", actor, { groupId: part.groupId, reason: why })]);
  }
  return { group: (await recovery.group(part.groupId)) ?? part, moved };
}

/** `undone`: rules of the same words whose groups were merged back since. They are taken away, or they would go on deciding. */
async function partOf(recovery: Records, group: Group, words: readonly string[], reason: string, book: GroupRuleBook) {
  // What was split off itself is split by its own words and these: the more particular rule wins.
  const own = group.groupRule === null ? undefined : book.byId.get(group.groupRule)?.rule;
  const all = [...new Set([...(own?.words ?? []), ...words])];
  if (all.length > RULE_LIMITS.wordsMax) throw noWords(`are too many: at most ${RULE_LIMITS.wordsMax} in all`);
  const found = new Set([...(own?.templates ?? []), ...(await templatesOf(recovery, [group], book))]);
  const templates = found.size > 0 ? [...found] : [group.template];
  const { topic, errorCode } = group;
  const undone: string[] = [];
  for (let time = 1; time <= TIMES_MAX; time++) {
    const id = splitId(group, words, time);
    const rule = checkedRule({ id, kind: "split", topic, errorCode, templates, words: all, reason });
    // Wherever it happened: a split is about the words, and the rule's group keeps the place of the one it came from.
    const { key: fingerprint, failureMatchId, template } = ruleFingerprint(rule, placeOf(group.fingerprint));
    const identity: GroupIdentity = { ...identityOf(group), fingerprint, failureMatchId, template, groupRule: id };
    const known = await recovery.groupOf({ fingerprint });
    if (known === null || known.fingerprint === fingerprint) return { rule, identity, known, undone };
    if (known.groupId !== group.groupId) {
      throw noWords(`were split off group ${group.groupId} before, and that is part of group ${known.groupId} now`);
    }
    undone.push(id);
  }
  throw noWords(`were split off and merged back ${TIMES_MAX} times`);
}

function splitId({ fingerprint }: Group, words: readonly string[], time: number): string {
  const text = JSON.stringify([fingerprint, [...words].sort()]);
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 24);
  return time === 1 ? `split-${digest}` : `split-${digest}-${time}`;
}

/** By this rule alone: whether another one would take it too is not the question here. */
function takenBy(group: Group, rule: GroupRule): (occurrence: Occurrence) => boolean {
  const asked = new Fingerprints({ rules: [rule], scopesMax: 0 });
  return (occurrence) => asked.of(failureOf(group, occurrence)).groupRule === rule.id;
}

/** Brings over what the rule takes, a page at a time; newest first, so what arrives meanwhile is placed by the rule already. */
async function move(recovery: Records, from: Group, to: Group, takes: (occurrence: Occurrence) => boolean): Promise<number> {
  let moved = 0;
  for await (const page of everyPage((at) => recovery.occurrences(from.groupId, at))) {
    const mine = page.filter(takes).map(({ occurrenceId }) => occurrenceId);
    if (mine.length > 0) moved += await recovery.moveOccurrences(from.groupId, to.groupId, mine);
  }
  return moved;
}

/** What stays behind after its own template left reads like what is there now, not like the part that went. */
async function retitle(recovery: Records, from: Group, to: Group): Promise<void> {
  const { data } = await recovery.occurrences(from.groupId, { limit: LEFT_READ });
  const { topic, errorCode, template } = from;
  const own: GroupRule = { id: "template", kind: "merge", topic, errorCode, templates: template.split(" | "), reason: "" };
  if (data.some(takenBy(from, own))) return;
  const left = ownTemplate(from, data);
  if (left !== null) await recovery.moveOccurrences(from.groupId, to.groupId, [], { left });
}

async function someTaken(recovery: Records, group: Group, takes: (occurrence: Occurrence) => boolean): Promise<Occurrence[]> {
  for await (const page of everyPage((at) => recovery.occurrences(group.groupId, at))) {
    const taken = page.filter(takes);
    if (taken.length > 0) return taken;
  }
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
