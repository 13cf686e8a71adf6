/**
 * The recovery engine, put together: every folder beside this file is made here and handed what it needs of the others. All state
 * is in the store, so any number of processes run it; what it does without being asked begins with `start` and ends with `stop`.
 */
import { errorText } from "../message/errors.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import { type Random, systemRandom } from "../platform/random.ts";
import type { Home } from "../store/home.ts";
import type { Store } from "../store/store.ts";
import { createCatalogue } from "./actions/catalogue.ts";
import { actionInfos, putAction } from "./actions/info.ts";
import { createCompletion } from "./candidates/completion.ts";
import { createConfidenceNow } from "./candidates/confidence-now.ts";
import { createDecisions } from "./candidates/decisions.ts";
import { createEvaluator } from "./candidates/evaluate-candidate.ts";
import { createEvaluateFailure } from "./candidates/evaluate-failure.ts";
import { createEvaluateMessage, type EvaluateMessage } from "./candidates/evaluate-message.ts";
import { evaluateRequest } from "./candidates/evaluate-request.ts";
import { createExecute } from "./candidates/execute.ts";
import { blastRadiusOf } from "./candidates/found.ts";
import { candidateDetail, candidateList } from "./candidates/read.ts";
import { suggest } from "./candidates/suggest.ts";
import { createUpdate } from "./candidates/update.ts";
import { ingestRules } from "./candidates/when.ts";
import { causeByCode } from "./causes/cause-by-code.ts";
import { createIntake } from "./failures/intake.ts";
import { createGroupJoins } from "./failures/join-groups.ts";
import { createOwnIngest } from "./failures/own-loop.ts";
import { createFailurePlaces } from "./failures/place-failures.ts";
import { ingestReport } from "./failures/report.ts";
import { existingGroup, groupDetail } from "./groups/read.ts";
import { createRegroup } from "./groups/regroup.ts";
import { createGroupRules } from "./groups/rule-documents.ts";
import { deleteGroupRule, listGroupRules } from "./groups/rule-list.ts";
import { createHooks } from "./hooks.ts";
import { createOwnTopics } from "./own-topics.ts";
import { createRecords, type Records } from "./records.ts";
import type { Recovery } from "./recovery.ts";
import type { RedriveSettings } from "./redrive/deps.ts";
import { createRedrives } from "./redrive/redrives.ts";
import { createRuleBook } from "./rules/rule-documents.ts";
import { type RecoveryOptions, type RecoverySettings, withDefaults } from "./settings.ts";
import { NOT_INGESTED } from "./topics.ts";

export interface RecoveryDeps {
  readonly home: Home;
  readonly store: Pick<Store, "topics" | "get" | "lead">;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random?: Random | undefined;
  /** Whether this process has a sink for the topic. */
  readonly serves: (topic: TopicRecord) => boolean;
  /** Throws `payload_rejected_by_schema` when the text does not fit the topic's schema. */
  readonly checkPayload: (topic: string, text: string) => void | Promise<void>;
  readonly settings?: Partial<RecoverySettings> | undefined;
  /** Of the topic `recovery/evaluate`, over its definition. */
  readonly evaluate?: RecoveryOptions["evaluate"];
  readonly redriveSettings?: Partial<RedriveSettings> | undefined;
}

export interface RecoveryEngine extends Recovery {
  /** The handler of topic `recovery/evaluate`; null while the evaluator is switched off: then its messages wait. */
  readonly evaluateMessage: EvaluateMessage | null;
  /** Ingest, completion and redrives of this process; while it works. */
  start(): void;
  stop(): Promise<void>;
  /** One look of each loop, for a process that has no loops running. */
  readonly steps: { ingest(): Promise<number>; complete(): Promise<number> };
}

/** The parts of the engine, each handed what it needs of the others. */
function createParts(deps: RecoveryDeps) {
  const { store, events, ids, clock, random = systemRandom } = deps;
  const { topics } = store;
  const { prepare, again } = createOwnTopics(topics, deps.evaluate);
  const records = createRecords(deps.home);
  const recovery: Records = { ...records, ingest: again(records.ingest), reopen: again(records.reopen) };
  const { documents } = recovery;
  const settings = withDefaults(deps.settings);
  const owner = `recovery-${ids()}`;
  const failed = (during: string) => (error: unknown) =>
    events.emit({ type: "store_error", during, error: errorText(error), consecutive: 1 });

  const hooks = createHooks({ clock, events });
  const catalogue = createCatalogue({ documents, events });
  const ruleBook = createRuleBook({ documents, catalogue, events });
  const groupRules = createGroupRules(documents, events);
  const rules = ingestRules(ids, settings.rejectedRestMs);

  const places = createFailurePlaces({ documents, groupRules });
  const joins = createGroupJoins({ recovery, fingerprints: places.fingerprints, rules, clock });
  const intake = createIntake({ recovery, places, joins, rules, joinFailed: failed("recovery_join") });
  const { pollMs, failingOften, minConfidence, approvalMs } = settings;
  const ownIngest = createOwnIngest({ prepare, recovery, store, intake, events, clock, owner, pollMs, failingOften });

  const redrives = createRedrives({ ...deps, recovery, owner, settings: deps.redriveSettings });
  const candidates = { recovery, catalogue, clock, approvalMs };
  const causeOf = causeByCode;
  const evaluateFailure = createEvaluateFailure({ recovery, causeOf, topics, ruleBook, catalogue, clock, minConfidence });
  const confidenceNow = createConfidenceNow(recovery, evaluateFailure);
  const execute = createExecute({ ...candidates, topics, ids, redrives, hooks, confidenceNow, settings });
  const completion = createCompletion({ recovery, confidenceNow, rules, hooks, events, clock });
  const decisions = createDecisions(candidates);
  const update = createUpdate({ ...candidates, topics, rules });

  // An evaluation only asks whether there are more than may run without a person.
  const blastRadius = (groupId: number) => blastRadiusOf(recovery, groupId, { limit: settings.autoMessagesMax + 1 });
  const evaluator = createEvaluator({ recovery, evaluateFailure, hooks, events, clock, random, settings, blastRadius });
  const note = (lines: Parameters<Records["note"]>[0]) => recovery.note(lines);
  const evaluateMessage = createEvaluateMessage({ evaluator, execute, automatic: recovery.automatic, note, topics, settings });
  const regroup = createRegroup({ recovery, groupRules, rules, ids });

  const forPeople = { candidates, decisions, update, execute, redrives, regroup };
  const byItself = { intake, ownIngest, completion, evaluator, evaluateFailure, evaluateMessage, failed };
  const kept = { recovery, topics, settings, hooks, catalogue, ruleBook, groupRules, places };
  return { ids, clock, prepare, ...kept, ...forPeople, ...byItself };
}

export function createRecovery(deps: RecoveryDeps): RecoveryEngine {
  const parts = createParts(deps);
  const { prepare, recovery, settings, catalogue, ruleBook, candidates, regroup, intake, ownIngest, completion } = parts;
  const { startForExecution: _, runner, ...redrives } = parts.redrives;
  let publishing: Promise<void> | undefined;

  return {
    ...redrives,
    async edit(messageId, edit) {
      const group = await recovery.groupOf({ messageId });
      return redrives.edit(messageId, { ...edit, groupId: group?.groupId ?? null });
    },
    ingest: (report) => ingestReport(parts, report),
    evaluate: (request) => evaluateRequest(parts, request),

    groups: (filter) => recovery.groups(filter),
    group: (groupId) => groupDetail(parts, groupId),
    async occurrences(groupId, page) {
      await existingGroup(recovery, groupId);
      return recovery.occurrences(groupId, page);
    },
    merge: (into, from, why, actor) => prepare().then(() => regroup.merge(into, from, why, actor)),
    split: (groupId, words, why, actor) => prepare().then(() => regroup.split(groupId, words, why, actor)),
    groupRules: () => listGroupRules(recovery, parts.groupRules),
    deleteGroupRule: (id, from, actor) => deleteGroupRule(recovery, id, from, actor),
    suggest: (groupId, actor) => suggest(parts, groupId, actor),

    candidates: (filter) => candidateList(candidates, filter),
    candidate: (candidateId, options) => candidateDetail(candidates, candidateId, options),
    update: parts.update,
    ...parts.decisions,
    execute: (candidateId, options) => parts.execute(candidateId, options),

    actions: ({ actionType } = {}) => actionInfos(catalogue, recovery, actionType),
    register: catalogue.register,
    putAction: (code, text, from, actor) => putAction(catalogue, recovery, { code, text, from, actor }),

    rules: ruleBook.rules,
    putRule: ruleBook.put,
    deleteRule: ruleBook.remove,
    ruleHistory: ruleBook.history,

    provenance: (of, page) => recovery.provenance(of, page),
    stats: () => recovery.stats(NOT_INGESTED),
    on: parts.hooks.on,

    evaluateMessage: settings.evaluatorEnabled ? parts.evaluateMessage : null,
    steps: { ingest: ownIngest.step, complete: completion.step },
    start() {
      publishing = catalogue.publish().catch(parts.failed("recovery_catalogue"));
      ownIngest.start();
      completion.start();
      runner.start();
    },
    async stop() {
      await Promise.all([ownIngest.stop(), completion.stop(), runner.stop(), publishing]);
      await intake.rest();
    },
  };
}
