/**
 * What the engine's tests share: an engine on the stage's store and clock, messages that die on demand, and a worker for the engine's own topic
 * that runs when asked. Nothing happens by itself, so every order of things can be played.
 */
import type { ClaimedMessage } from "../../../src/message/message.ts";
import type { Settlement } from "../../../src/message/settlement.ts";
import type { SinkConfig, TopicDefinition } from "../../../src/message/topic.ts";
import type { MakegoodEvent } from "../../../src/observe/events.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import { createRecovery, type RecoveryEngine } from "../../../src/recovery/engine.ts";
import type { Actor, FailureReport } from "../../../src/recovery/recovery.ts";
import type { RecoverySettings } from "../../../src/recovery/settings.ts";
import { EVALUATION_ATTEMPTS_MAX, RECOVERY_TOPIC } from "../../../src/recovery/topics.ts";
import { createStage, type Stage } from "../stage.ts";

export const ANN: Actor = { actor: "ann", actorType: "human" };
export const BO: Actor = { actor: "bo", actorType: "human" };
export const ROBOT: Actor = { actor: "robot", actorType: "agent" };

export interface SceneOptions {
  readonly settings?: Partial<RecoverySettings>;
  readonly fallback?: SinkConfig;
  readonly compensation?: SinkConfig;
}

export interface Scene extends Pick<Stage, "clock" | "store" | "recovery" | "maintain"> {
  readonly engine: RecoveryEngine;
  readonly events: MakegoodEvent[];
  /** Another process on the same store. */
  another(settings?: Partial<RecoverySettings>): RecoveryEngine;
  /** Messages of `topic` that die with these texts; their ids. Ingested unless told otherwise. */
  die(texts: readonly string[], how?: { topic?: string; code?: string; ingest?: boolean; tenantId?: string }): Promise<string[]>;
  /** Claims these and settles them so. */
  settle(ids: readonly string[], settlement: Settlement): Promise<void>;
  /** Works on `recovery/evaluate` until nothing is due; the outcomes. */
  work(engine?: RecoveryEngine): Promise<string[]>;
  /** The one current candidate there is. */
  candidate(): Promise<Candidate>;
  report(fields?: Partial<FailureReport>): FailureReport;
  /** A group of one timeout, evaluated: retry_exponential at 0.85. */
  timeout(count?: number): Promise<Candidate>;
  emit(event: MakegoodEvent): void;
}

export const TOPIC = "shop/charge";

export function definition(name: string, sink: SinkConfig, more: Partial<TopicDefinition> = {}): TopicDefinition {
  return {
    name,
    sink,
    retry: { policy: "exponential" },
    schemaVersion: null,
    leaseMs: 30_000,
    concurrency: null,
    tenantConcurrency: null,
    ordering: "none",
    ...more,
  };
}

export function dead(error: string, code: string): Settlement {
  return { kind: "dead", blocksOrder: false, outcome: "reject", code, error };
}

/** So many executions that ended alike. */
export const times = <T>(count: number, execution: T): T[] => Array.from({ length: count }, () => execution);

export const DELIVERED: Settlement = { kind: "delivered", outcome: "delivered" };

export async function createScene({ settings, fallback, compensation }: SceneOptions = {}): Promise<Scene> {
  const { clock, store, recovery, records, events: bus, heard: events, ids, maintain } = await createStage();
  const sink: SinkConfig = { kind: "http", url: "https://pay.example/charges" };
  await store.topics.put(
    definition(TOPIC, sink, { ...(fallback && { fallback }), ...(compensation && { compensation }) }),
    "code",
  );

  const make = (own: Partial<RecoverySettings> = {}): RecoveryEngine =>
    createRecovery(
      {
        ...{ home: store.home, store, events: bus, ids, clock, maintain },
        serves: () => true,
        checkPayload: () => {},
        settings: { ...settings, ...own },
      },
      records,
    );
  const engine = make();

  async function settleEach(of: readonly string[], settlement: (i: number) => Settlement): Promise<void> {
    const claimed = await store.claim({ owner: "test", leaseMs: 30_000, lanes: [], ids: of });
    if (claimed.length !== of.length) throw new Error(`${claimed.length} of ${of.length} could be claimed`);
    await store.settle(claimed.map((message) => settleOf(message, settlement(of.indexOf(message.id)))));
  }

  const scene: Scene = {
    clock,
    maintain,
    store,
    recovery,
    engine,
    events,
    another: make,
    settle: (of, settlement) => settleEach(of, () => settlement),
    async die(texts, { topic = TOPIC, code = "TIMEOUT", ingest = true, tenantId = null as unknown as string } = {}) {
      const messages = texts.map((_, i) => {
        const payload = JSON.stringify({ n: i });
        return { id: ids(), topic, tenantId, key: null, payload, payloadHash: "", ...PLAIN };
      });
      await store.enqueue(messages);
      const own = messages.map(({ id }) => id);
      await settleEach(own, (i) => dead(texts[i] ?? "", code));
      if (ingest) while ((await engine.steps.ingest()) > 0);
      return own;
    },
    async work(by = engine) {
      const outcomes: string[] = [];
      for (;;) {
        const due = (await store.lanes()).filter(({ topic, dueInMs }) => topic === RECOVERY_TOPIC && dueInMs <= 0);
        if (due.length === 0) return outcomes;
        const lanes = due.map(({ lane }) => ({ lane, limit: 10 }));
        for (const message of await store.claim({ owner: "test", leaseMs: 30_000, lanes })) {
          const outcome = await (by.evaluateMessage as NonNullable<RecoveryEngine["evaluateMessage"]>)(
            JSON.parse(message.payload),
            message.attempt,
          );
          outcomes.push(outcome.kind);
          await store.settle([settleOf(message, settlementOf(outcome.kind, message))]);
        }
      }
    },
    async candidate() {
      const { data } = await recovery.candidates({ limit: 10 });
      if (data.length !== 1) throw new Error(`there are ${data.length} current candidates`);
      return data[0] as Candidate;
    },
    report: (fields = {}) => ({
      failureMatchId: null,
      idempotencyKey: null,
      source: "api",
      topic: null,
      sink: null,
      errorCode: "TIMEOUT",
      errorMessage: "the call timed out",
      stackTrace: null,
      skillId: null,
      tenantId: null,
      failurePayload: `{"error_type":"TIMEOUT"}`,
      enqueueEvaluation: true,
      ...fields,
    }),
    async timeout(count = 1) {
      await scene.die(Array.from({ length: count }, (_, i) => `no answer within ${1_000 + i} ms`));
      await scene.work();
      return scene.candidate();
    },
    emit: (event) => bus.emit(event),
  };
  return scene;
}

const PLAIN = { delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null } as const;

function settleOf({ id, claim, attempt }: ClaimedMessage, settlement: Settlement) {
  return { id, claim, attempt, durationMs: 1, settlement };
}

function settlementOf(outcome: string, { attempt }: ClaimedMessage): Settlement {
  if (outcome === "delivered") return DELIVERED;
  if (outcome === "reject" || attempt >= EVALUATION_ATTEMPTS_MAX) return dead("the evaluation failed", "evaluation_failed");
  return {
    kind: "retry",
    delayMs: 0,
    counted: true,
    suspicion: 0,
    outcome: "retry",
    code: "evaluation_failed",
    error: "not now",
  };
}
