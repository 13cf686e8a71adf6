/**
 * The recovery engine of this process: made where the store keeps its records, at work while a worker is. It gets the parts it needs as
 * plain functions, and gives the kernel the sink of its own topic.
 */
import type { ReplayUncarried } from "../client/intervene.ts";
import { startMaintenance } from "../maintenance/maintenance.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import { createRecovery, type RecoveryDeps } from "../recovery/engine.ts";
import type { Recovery } from "../recovery/recovery.ts";
import { carriedAmong, carriedError } from "../recovery/redrive/select-sql.ts";
import type { RecoveryOptions } from "../recovery/settings.ts";
import { RECOVERY_TOPIC } from "../recovery/topics.ts";
import { functionSink } from "../sink/function.ts";
import type { Sink } from "../sink/sink.ts";
import { homeOf } from "../store/home.ts";
import type { Store } from "../store/store.ts";

export interface RecoveryParts extends Pick<RecoveryDeps, "serves" | "checkPayload"> {
  readonly store: Store;
  /** Where topics and messages are read; absent: in the store. */
  readonly reads?: Pick<Store, "topics" | "get"> | undefined;
  readonly events: Events;
  readonly ids: () => string;
  readonly clock: Clock;
  readonly random: Random;
}

export interface OpenedRecovery {
  readonly recovery: Recovery;
  /** The sink of a topic of the engine's own; undefined: not one of them. */
  sinkOf(record: TopicRecord): Sink | null | undefined;
  /** At work until the last one lets go. */
  hold(): () => Promise<void>;
}

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
export function openRecovery(options: RecoveryOptions | false | undefined, parts: RecoveryParts): OpenedRecovery | null {
  const home = homeOf(parts.store);
  if (home === null || options === false) return null;
  const { store, events, ids, clock, random, serves, checkPayload } = parts;
  const { evaluate, ...settings } = options ?? {};
  const engine = createRecovery({
    home,
    store: parts.reads ?? store,
    events,
    ids,
    clock,
    settings,
    evaluate,
    maintain: (jobs) => startMaintenance({ store, owner: `recovery-${ids()}`, clock, random, events, jobs, name: "recovery" }),
    serves,
    checkPayload,
  });
  const { evaluateMessage } = engine;
  return {
    recovery: engine,
    sinkOf(record) {
      if (record.name !== RECOVERY_TOPIC || record.sink.kind !== "function") return undefined;
      return evaluateMessage && functionSink((payload, delivery) => evaluateMessage(payload, delivery.attempt));
    },
    hold: createHold(engine.start, engine.stop),
  };
}

/** At work from the first one that holds it until the last one lets go. */
export function createHold(start: () => void, stop: () => Promise<void>): () => () => Promise<void> {
  let holders = 0;
  let ending: Promise<void> = Promise.resolve();
  return () => {
    holders++;
    if (holders === 1) void ending.then(start);
    let held = true;
    return async () => {
      if (!held) return;
      held = false;
      holders--;
      if (holders === 0) ending = ending.then(stop);
      await ending;
    };
  };
}
