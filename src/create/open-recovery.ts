/** The recovery engine of this process: made where the store keeps its records, at work while a worker is. */
import type { ReplayUncarried } from "../client/intervene.ts";
import type { Jobs } from "../maintenance/by-hand.ts";
import { startMaintenance } from "../maintenance/maintenance.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Random } from "../platform/random.ts";
import { createRecovery, type RecoveryDeps } from "../recovery/engine.ts";
import { carriedAmong, carriedError } from "../recovery/redrive/select-sql.ts";
import type { RecoveryOptions } from "../recovery/settings.ts";
import { RECOVERY_TOPIC } from "../recovery/topics.ts";
import { functionSink } from "../sink/function.ts";
import type { Sink } from "../sink/sink.ts";
import { homeOf } from "../store/home.ts";
import type { Store } from "../store/store.ts";

export interface RecoveryParts extends Pick<RecoveryDeps, "serves" | "checkPayload" | "events" | "ids" | "clock"> {
  readonly store: Store;
  /** Where topics and messages are read; absent: in the store. */
  readonly reads?: RecoveryDeps["store"] | undefined;
  readonly random: Random;
}

export type OpenedRecovery = NonNullable<ReturnType<typeof openRecovery>>;

/** Also where the engine itself is switched off: another process may have sent the copy. */
export function replayUncarriedOf(store: Store): ReplayUncarried | undefined {
  const home = homeOf(store);
  if (home === null) return undefined;
  return (one) =>
    home.intervene(one, async (run) => {
      const [found] = await carriedAmong(home.s, run, [one.id]);
      if (found) throw carriedError(found);
    });
}

/** Null where the store keeps no such records, or nobody wants them. */
export function openRecovery(options: RecoveryOptions | false | undefined, parts: RecoveryParts) {
  const { store, reads = store, random, ...given } = parts;
  const { events, ids, clock } = given;
  const home = homeOf(store);
  if (home === null || options === false) return null;
  const { evaluate, ...settings } = options ?? {};
  const maintain: RecoveryDeps["maintain"] = (jobs) =>
    startMaintenance({ store, owner: `recovery-${ids()}`, clock, random, events, jobs, name: "recovery" });
  const engine = createRecovery({ ...given, home, store: reads, settings, evaluate, maintain });
  const { evaluateMessage } = engine;
  return {
    recovery: engine,
    /** The sink of a topic of the engine's own; undefined: not one of them. */
    sinkOf(record: TopicRecord): Sink | null | undefined {
      if (record.name !== RECOVERY_TOPIC || record.sink.kind !== "function") return undefined;
      return evaluateMessage && functionSink((payload, delivery) => evaluateMessage(payload, delivery.attempt));
    },
    /** What it does by itself, and in which store that is led. */
    upkeep: { store, jobs: engine.jobs, beside: null as Jobs | null },
    hold: createHold(() => {
      engine.start();
      return engine.stop;
    }),
  };
}

/** At work from the first one that holds it until the last one lets go. `start` returns how to stop. */
export function createHold(start: () => () => Promise<void>): () => () => Promise<void> {
  let holders = 0;
  let stop = async (): Promise<void> => {};
  let ending = Promise.resolve();
  const begin = (): void => {
    stop = start();
  };
  return () => {
    if (++holders === 1) void ending.then(begin);
    let held = true;
    return async () => {
      if (held && --holders === 0) ending = ending.then(() => stop());
      held = false;
      await ending;
    };
  };
}
