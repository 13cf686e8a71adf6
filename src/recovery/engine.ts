/**
 * The recovery engine, put together: every room beside this file is made here and handed what it needs of the others. What it keeps is in
 * the store, so any number of processes run it; what it does by itself begins with `start` and ends with `stop`.
 */
import { errorText } from "../message/errors.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { RecoveryStore } from "../store/recovery.ts";
import type { Store } from "../store/store.ts";
import { createCatalogue } from "./actions/catalogue.ts";
import { createCompletion } from "./candidate/completion.ts";
import { createDecisions } from "./candidate/decide.ts";
import { createExecute } from "./candidate/execute.ts";
import { blastRadiusOf } from "./candidate/found.ts";
import { createUpdate } from "./candidate/update.ts";
import { createEvaluator } from "./evaluation/evaluate-candidate.ts";
import { createEvaluateMessage, type EvaluateMessage } from "./evaluation/evaluate-message.ts";
import { createJudge } from "./evaluation/judge.ts";
import { ingestRules } from "./evaluation/when.ts";
import { createFace } from "./face.ts";
import { createRegroup } from "./groups/regroup.ts";
import { createGroupRules } from "./groups/rule-documents.ts";
import { createHooks } from "./hooks.ts";
import { createIntake } from "./ingest/intake.ts";
import { createGroupJoins } from "./ingest/join-groups.ts";
import { createOwnIngest } from "./ingest/own-loop.ts";
import { createFailurePlaces } from "./ingest/place-failures.ts";
import { createOwnTopics } from "./own-topics.ts";
import type { Recovery } from "./recovery.ts";
import type { RedriveSettings } from "./redrive/deps.ts";
import { createRedrives } from "./redrive/redrives.ts";
import { createRuleBook } from "./rules/rule-documents.ts";
import { type RecoveryOptions, type RecoverySettings, withDefaults } from "./settings.ts";

export interface RecoveryDeps {
  readonly recovery: RecoveryStore;
  readonly store: Pick<Store, "topics" | "get" | "lead">;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
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
  /** One look of each loop, for whoever has no loops running. */
  readonly steps: { ingest(): Promise<number>; complete(): Promise<number> };
}

export function createRecovery(deps: RecoveryDeps): RecoveryEngine {
  const { store, events, ids, clock } = deps;
  const { topics } = store;
  const { prepare, sure } = createOwnTopics(topics, deps.evaluate);
  const recovery = sure(deps.recovery);
  const { documents } = recovery;
  const settings = withDefaults(deps.settings);
  const owner = `recovery-${ids()}`;
  const failed = (during: string) => (error: unknown) =>
    events.emit({ type: "store_error", during, error: errorText(error), consecutive: 1 });

  let publishing: Promise<void> | undefined;
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

  const redrives = createRedrives({ ...deps, owner, settings: deps.redriveSettings });
  const candidates = { recovery, catalogue, clock, approvalMs };
  const execute = createExecute({ ...candidates, topics, ids, redrives, hooks, settings });
  const completion = createCompletion({ recovery, rules, hooks, events, clock });
  const decisions = createDecisions(candidates);
  const update = createUpdate({ ...candidates, topics, rules });

  const judge = createJudge({ recovery, topics, ruleBook, catalogue, clock, minConfidence });
  // Whether there are more than may run by themselves is all that an evaluation asks.
  const blastRadius = (groupId: number) => blastRadiusOf(recovery, groupId, { limit: settings.autoMessagesMax + 1 });
  const evaluator = createEvaluator({ recovery, judge, hooks, events, clock, settings, blastRadius });
  const note = (lines: Parameters<RecoveryStore["note"]>[0]) => recovery.note(lines);
  const evaluateMessage = createEvaluateMessage({ evaluator, execute, note, topics, settings });
  const regroup = createRegroup({ recovery, groupRules, rules, ids });

  const parts = { prepare, intake, places, groupRules, judge, evaluator, catalogue, ruleBook, hooks, candidates };
  const face = createFace({ ...parts, recovery, topics, clock, ids, regroup, decisions, update, execute, redrives });
  return {
    ...face,
    evaluateMessage: settings.evaluatorEnabled ? evaluateMessage : null,
    steps: {
      ingest: () => ownIngest.step(),
      complete: () => completion.step(),
    },
    start() {
      publishing = catalogue.publish().catch(failed("recovery_catalogue"));
      ownIngest.start();
      completion.start();
      redrives.runner.start();
    },
    async stop() {
      await Promise.all([ownIngest.stop(), completion.stop(), redrives.runner.stop(), publishing]);
      await intake.rest();
    },
  };
}
