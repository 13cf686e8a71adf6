/** The recovery engine, put together. All state is in the store, so any number of processes run it. */
import { errorText } from "../message/errors.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import { inTurn, type MaintenanceJob } from "../platform/job.ts";
import { type Random, systemRandom } from "../platform/random.ts";
import type { Home } from "../store/home.ts";
import type { Store } from "../store/store.ts";
import { createCatalogue } from "./actions/catalogue.ts";
import { actionInfos, putAction } from "./actions/info.ts";
import { claim, reportOutcome } from "./candidates/claim.ts";
import { createCompletion } from "./candidates/completion.ts";
import { approve, reject, release, update } from "./candidates/decisions.ts";
import { evaluateMessage, suggest } from "./candidates/evaluate-candidate.ts";
import { evaluateRequest } from "./candidates/evaluate-failure.ts";
import { execute } from "./candidates/execute.ts";
import type { CandidateDeps } from "./candidates/found.ts";
import { candidateDetail, candidateList } from "./candidates/read.ts";
import { whatIf } from "./candidates/what-if.ts";
import { createSignatureBook } from "./causes/signature-documents.ts";
import type { OccurrencePage } from "./failures/failure.ts";
import { ingestReport } from "./failures/incoming.ts";
import type { Ingested } from "./failures/ingest.ts";
import { createIntake } from "./failures/intake.ts";
import { createGroupJoins } from "./failures/join-groups.ts";
import { createOwnIngest } from "./failures/own-loop.ts";
import { createFailurePlaces } from "./failures/place-failures.ts";
import { changedGroup, mergeGroups } from "./groups/merge.ts";
import { existingGroup, groupDetail } from "./groups/read.ts";
import { createGroupRules, deleteGroupRule, listGroupRules } from "./groups/rule-documents.ts";
import { splitGroup } from "./groups/split.ts";
import { createHooks } from "./hooks.ts";
import { createRecords, type Records } from "./records.ts";
import type { Actor, ExecuteOptions, FailureReport, ResolveRequest } from "./recovery.ts";
import type { RedriveSettings } from "./redrive/claimed-redrive.ts";
import type { EditRequest } from "./redrive/edit.ts";
import { createRedrives } from "./redrive/redrives.ts";
import { createRuleBook } from "./rules/rule-documents.ts";
import { type RecoveryOptions, type RecoverySettings, withDefaults } from "./settings.ts";
import { createOwnTopics, NOT_INGESTED } from "./topics.ts";

export interface RecoveryDeps {
  readonly home: Home;
  readonly store: Pick<Store, "topics" | "get">;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random?: Random | undefined;
  /** Runs what the engine does without being asked, until it is stopped. */
  readonly maintain: (jobs: readonly MaintenanceJob[]) => { stop(): Promise<void> };
  /** Whether this process has a sink for the topic. */
  readonly serves: (topic: TopicRecord) => boolean;
  /** Throws `payload_rejected_by_schema` when the text does not fit the topic's schema. */
  readonly checkPayload: (topic: string, text: string) => void | Promise<void>;
  readonly settings?: Partial<RecoverySettings> | undefined;
  /** Of the topic `recovery/evaluate`, over its definition. */
  readonly evaluate?: RecoveryOptions["evaluate"];
  readonly redriveSettings?: Partial<RedriveSettings> | undefined;
}

export type RecoveryEngine = ReturnType<typeof createRecovery>;

/** The parts of the engine, each handed what it needs of the others. */
function createParts(deps: RecoveryDeps, records: Records) {
  const { store, events, ids, clock, random = systemRandom } = deps;
  const { topics } = store;
  const { prepare, again } = createOwnTopics(topics, deps.evaluate);
  const recovery: Records = { ...records, ingest: again(records.ingest), reopen: again(records.reopen) };
  const { documents } = recovery;
  const settings = withDefaults(deps.settings);
  const owner = `recovery-${ids()}`;
  const failed = (during: string) => (error: unknown) =>
    events.emit({ type: "store_error", during, error: errorText(error), consecutive: 1 });

  const hooks = createHooks({ clock, events });
  const catalogue = createCatalogue({ documents, events });
  const signatures = createSignatureBook(documents, events);
  const ruleBook = createRuleBook(documents, events, catalogue.usable, signatures.finder);
  const groupRules = createGroupRules(documents, events);
  const ingesting = { ids, rejectedRestMs: settings.rejectedRestMs };

  const places = createFailurePlaces(documents, groupRules);
  const joins = createGroupJoins({ recovery, fingerprints: places.fingerprints, settings: ingesting, clock });
  const regressed = ({ groupId, candidateId }: Ingested) =>
    events.emit({ type: "lifecycle", what: "recovery_regression", detail: { group: groupId, candidate: candidateId } });
  const intake = createIntake({ recovery, places, joins, settings: ingesting, joinFailed: failed("recovery_join"), regressed });
  const { pollMs, failingOften, appVersion } = settings;
  const ownIngest = createOwnIngest({ prepare, recovery, store, intake, events, clock, pollMs, failingOften, appVersion });

  const redrives = createRedrives({ ...deps, recovery, owner, settings: deps.redriveSettings });
  const used = { recovery, topics, catalogue, ruleBook, places, redrives, hooks, prepare, settings };
  const candidates: CandidateDeps = { ...used, events, ids, clock, random };
  const completion = createCompletion(candidates);

  const kept = { recovery, settings, hooks, catalogue, ruleBook, signatures, groupRules, places };
  return { ids, prepare, ...kept, candidates, redrives, intake, ownIngest, completion, failed };
}

/** An operation of a folder, handed its parts. */
const bound =
  <D, A extends unknown[], R>(work: (parts: D, ...given: A) => R, parts: D) =>
  (...given: A): R =>
    work(parts, ...given);

/** What people write and the engine reads: rules, and the signatures of causes. */
const booksOf = ({ ruleBook, signatures }: Pick<ReturnType<typeof createParts>, "ruleBook" | "signatures">) => ({
  rules: ruleBook.all,
  /** `from`: the version it was edited from, 0 for a new one. `text` is JSON; every fault is in `detail.errors`. */
  putRule: ruleBook.put,
  deleteRule: ruleBook.remove,
  ruleHistory: ruleBook.history,
  causes: signatures.all,
  putCause: signatures.put,
  deleteCause: signatures.remove,
});

export function createRecovery(deps: RecoveryDeps, records: Records = createRecords(deps.home)) {
  const parts = createParts(deps, records);
  const { recovery, settings, catalogue, candidates, intake, ownIngest, completion } = parts;
  const { startForExecution: _, runner, ...redrives } = parts.redrives;
  const jobs: readonly MaintenanceJob[] = [...ownIngest.jobs, ...completion.jobs, ...runner.jobs, recovery.addUpJob].map(inTurn);
  let publishing: Promise<void> | undefined;
  let maintained: { stop(): Promise<void> } | undefined;

  return {
    ...redrives,
    /** A dead letter again with another payload, checked against its schema; the original is kept, resolved. */
    async edit(messageId: string, edit: Omit<EditRequest, "groupId">) {
      const group = await recovery.groupOf({ messageId });
      return redrives.edit(messageId, { ...edit, groupId: group?.groupId ?? null });
    },
    ingest: (report: FailureReport, _actor: Actor) => ingestReport(parts, report),
    evaluate: bound(evaluateRequest, candidates),

    groups: recovery.groups,
    group: bound(groupDetail, parts),
    async occurrences(groupId: number, page: OccurrencePage) {
      await existingGroup(recovery, groupId);
      return recovery.occurrences(groupId, page);
    },
    /** `from` join `into`; a rule for the future is kept with it. */
    merge: bound(mergeGroups, parts),
    /** What fits the group's template and contains all these words becomes a group of its own. */
    split: bound(splitGroup, parts),
    /** Nothing more is suggested for it until it fails again, in this version or a later one. */
    resolveGroup: (groupId: number, request: ResolveRequest) => recovery.resolveGroup(groupId, request).then(changedGroup),
    groupRules: () => listGroupRules(recovery, parts.groupRules),
    /**
     * From now on a split takes nothing more. Groups that were merged stay merged: a split parts them. What was counted stays.
     * `from`: its version; null: any.
     */
    deleteGroupRule: bound(deleteGroupRule, recovery),
    /** Asks for a fresh suggestion: opens the next round where the last one is closed. */
    suggest: bound(suggest, candidates),
    /** Nobody holds the group any more; where dead letters are open there is a suggestion again. */
    release: bound(release, candidates),

    candidates: bound(candidateList, candidates),
    candidate: bound(candidateDetail, candidates),
    update: bound(update, candidates),
    approve: bound(approve, candidates),
    reject: bound(reject, candidates),
    claim: bound(claim, candidates),
    reportOutcome: bound(reportOutcome, candidates),
    execute: (candidateId: number, options: ExecuteOptions) => execute(candidates, candidateId, options),

    actions: ({ actionType }: { readonly actionType?: string | undefined } = {}) => actionInfos(catalogue, recovery, actionType),
    register: catalogue.register,
    /** Its settings as JSON (enabled, approval, risk, priority, template; absent members stay as shipped), as `putRule` does. */
    putAction: (code: string, text: string, from: number, actor: Actor) =>
      putAction(catalogue, recovery, { code, text, from, actor }),

    ...booksOf(parts),
    /** What rules that are not in use would have suggested for the groups of the last days. */
    whatIf: bound(whatIf, candidates),

    provenance: recovery.provenance,
    stats: () => recovery.stats(NOT_INGESTED),
    /** Returns a function that takes it off again. */
    on: parts.hooks.on,

    /** The handler of topic `recovery/evaluate`; null while the evaluator is switched off: then its messages wait. */
    evaluateMessage: settings.evaluatorEnabled ? bound(evaluateMessage, candidates) : null,
    /** One look of each, for a process in which no jobs run. */
    steps: { ingest: ownIngest.step, complete: completion.step },
    /** What it does by itself while it works. */
    jobs,
    start(): void {
      publishing = catalogue.publish().catch(parts.failed("recovery_catalogue"));
      maintained ??= deps.maintain(jobs);
    },
    async stop(): Promise<void> {
      const stopping = maintained;
      maintained = undefined;
      await Promise.all([stopping?.stop(), publishing]);
      await runner.release();
      await intake.rest();
    },
  };
}
