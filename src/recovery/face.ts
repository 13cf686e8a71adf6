/**
 * The engine's face: each member of `Recovery` is one call into the room that does it. Nothing is decided here.
 */

import { MakegoodError } from "../message/errors.ts";
import { isTopicName } from "../message/validate.ts";
import type { Clock } from "../platform/clock.ts";
import type { RecoveryStore } from "../store/recovery.ts";
import type { TopicStore } from "../store/topics.ts";
import type { Catalogue } from "./actions/catalogue.ts";
import { actionInfos } from "./actions/info.ts";
import type { Decisions } from "./candidate/decide.ts";
import type { Execute } from "./candidate/execute.ts";
import type { CandidateDeps } from "./candidate/found.ts";
import { candidateDetail, candidateList } from "./candidate/read.ts";
import type { Evaluator } from "./evaluation/evaluate-candidate.ts";
import type { Judge } from "./evaluation/judge.ts";
import { askedRules } from "./evaluation/when.ts";
import { mask } from "./fingerprint/mask.ts";
import { explainGroup } from "./groups/explain.ts";
import type { Regroup } from "./groups/regroup.ts";
import type { GroupRuleBook } from "./groups/rule-documents.ts";
import { deleteGroupRule, listGroupRules } from "./groups/rule-list.ts";
import type { Hooks } from "./hooks.ts";
import { cleanName, cleanText } from "./ingest/clean-text.ts";
import type { Intake } from "./ingest/intake.ts";
import { sinkName } from "./ingest/own-failures.ts";
import type { FailurePlaces } from "./ingest/place-failures.ts";
import { answerOf, incomingOf, OUTSIDE_TOPIC } from "./ingest/report.ts";
import { line } from "./provenance.ts";
import type { Actor, EvaluateAnswer, EvaluateRequest, GroupDetail, Recovery } from "./recovery.ts";
import type { Redrives } from "./redrive/redrives.ts";
import type { RuleBook } from "./rules/rule-documents.ts";
import { NOT_INGESTED } from "./topics.ts";

export interface FaceParts {
  readonly recovery: RecoveryStore;
  readonly clock: Clock;
  readonly ids: () => string;
  readonly topics: Pick<TopicStore, "get">;
  readonly prepare: () => Promise<void>;
  readonly intake: Intake;
  readonly places: FailurePlaces;
  readonly groupRules: () => Promise<GroupRuleBook>;
  readonly judge: Judge;
  readonly evaluator: Evaluator;
  readonly catalogue: Catalogue;
  readonly ruleBook: RuleBook;
  readonly hooks: Hooks;
  readonly candidates: CandidateDeps;
  readonly regroup: Regroup;
  readonly decisions: Decisions;
  readonly update: Recovery["update"];
  readonly execute: Execute;
  readonly redrives: Redrives;
}

/** The newest of a group, for its page. */
const OCCURRENCES = 20;

export function createFace(parts: FaceParts): Recovery {
  const { recovery, catalogue, ruleBook, regroup, decisions, candidates } = parts;
  const { startForExecution: _, runner: __, ...redrives } = parts.redrives;
  const infos = (actionType?: string) => actionInfos(catalogue, recovery, actionType);
  const info = async (code: string) => (await infos()).find((each) => each.code === code) ?? null;

  return {
    ...redrives,
    async edit(messageId, edit) {
      const group = await recovery.groupOf({ messageId });
      return redrives.edit(messageId, { ...edit, groupId: group?.groupId ?? null });
    },
    async ingest(report, _actor) {
      const incoming = incomingOf(report);
      await parts.prepare();
      const [ingested] = await parts.intake.take([incoming]);
      if (ingested === undefined) throw new MakegoodError("invariant_violated", "An ingest of one failure gave no answer.", {});
      return answerOf(report, ingested);
    },
    evaluate: (request) => evaluateRequest(parts, request),

    groups: (filter) => recovery.groups(filter),
    group: (groupId) => groupDetail(parts, groupId),
    async occurrences(groupId, page) {
      await existingGroup(recovery, groupId);
      return recovery.occurrences(groupId, page);
    },
    async merge(into, from, why, actor) {
      await parts.prepare();
      return regroup.merge(into, from, why, actor);
    },
    async split(groupId, words, why, actor) {
      await parts.prepare();
      return regroup.split(groupId, words, why, actor);
    },
    groupRules: () => listGroupRules(recovery, parts.groupRules),
    deleteGroupRule: (id, from, actor) => deleteGroupRule(recovery, id, from, actor),
    suggest: (groupId, actor) => suggest(parts, groupId, actor),

    candidates: (filter) => candidateList(candidates, filter),
    candidate: (candidateId, options) => candidateDetail(candidates, candidateId, options),
    update: (candidateId, update) => parts.update(candidateId, update),
    approve: (candidateId, by) => decisions.approve(candidateId, by),
    reject: (candidateId, by) => decisions.reject(candidateId, by),
    execute: (candidateId, options) => parts.execute(candidateId, options),

    actions: ({ actionType } = {}) => infos(actionType),
    register: (action) => catalogue.register(action),
    async putAction(code, text, from, actor) {
      await catalogue.put(code, text, from, actor);
      return (await info(code)) as NonNullable<Awaited<ReturnType<typeof info>>>;
    },

    rules: () => ruleBook.rules(),
    putRule: (id, text, from, actor) => ruleBook.put(id, text, from, actor),
    deleteRule: (id, from, actor) => ruleBook.remove(id, from, actor),
    ruleHistory: (id) => ruleBook.history(id),

    provenance: (of, page) => recovery.provenance(of, page),
    stats: () => recovery.stats(NOT_INGESTED),
    on: (name, hook, options) => parts.hooks.on(name, hook, options),
  };
}

async function existingGroup(recovery: RecoveryStore, groupId: number) {
  const group = await recovery.group(groupId);
  if (group === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
  return group;
}

async function groupDetail({ recovery, places, groupRules }: FaceParts, groupId: number): Promise<GroupDetail> {
  const group = await existingGroup(recovery, groupId);
  const [candidate, { data: occurrences }, book] = await Promise.all([
    recovery.candidateOf(groupId),
    recovery.occurrences(groupId, { limit: OCCURRENCES }),
    groupRules(),
  ]);
  const rule = group.rule === null ? undefined : book.byId.get(group.rule);
  const fingerprints = await places.trial(group);
  return { group, candidate, occurrences, why: explainGroup(group, occurrences, fingerprints, rule) };
}

/** REC-14: nothing is written, and nothing is learned from the question. */
async function evaluateRequest(
  { recovery, topics, places, judge, clock }: FaceParts,
  request: EvaluateRequest,
): Promise<EvaluateAnswer> {
  const startedMs = clock.monotonicMs();
  const text = cleanText(request.message ?? "");
  const stack = request.stack === undefined ? null : cleanText(request.stack);
  const topic = cleanName(request.topic ?? "") || OUTSIDE_TOPIC;
  const ours = request.sink === undefined && isTopicName(topic) ? await topics.get(topic) : null;
  const failure = {
    topic,
    sink: ours === null ? mask(cleanName(request.sink ?? "")) : sinkName(ours),
    code: cleanName(request.code) || "unknown",
    text,
  };
  const { fingerprint, matchId, template } = await places.look({ ...failure, ...(stack === null ? {} : { stack }) });
  const group = await recovery.groupOf({ fingerprint });
  const occurrences = request.occurrences ?? (group === null ? 1 : group.occurrences + 1);
  const { evaluation } = await judge({ ...failure, stack, skill: request.skill ?? null, occurrences }, group);
  const durationMs = clock.monotonicMs() - startedMs;
  return { evaluation, fingerprint, failureMatchId: matchId, template, groupId: group?.groupId ?? null, durationMs };
}

async function suggest({ recovery, evaluator, prepare, ids }: FaceParts, groupId: number, actor: Actor) {
  await existingGroup(recovery, groupId);
  await prepare();
  const asked = await recovery.reopen(groupId, askedRules(ids), [line("suggestion_asked", actor, { groupId })]);
  if (asked === null) throw new MakegoodError("group_not_found", `There is no group ${groupId}.`, { groupId });
  // At once, for whoever waits for it; the message that was queued with it finds it done.
  return (await evaluator.evaluate(asked.candidateId)).candidate;
}
