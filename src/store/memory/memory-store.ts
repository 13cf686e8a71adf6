/**
 * The memory store: the oracle, the smallest correct implementation of the Store seam. It survives nothing and serves one
 * process; tests, simulation and the last rung of the fallback ladder use it.
 */
import { MakegoodError } from "../../message/errors.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { type Random, systemRandom } from "../../platform/random.ts";
import type { WithMovable } from "../movable.ts";
import type { Store } from "../store.ts";
import { claim, extend, reclaim } from "./claim.ts";
import { enqueue } from "./enqueue.ts";
import { intervene } from "./intervene.ts";
import { listLanes } from "./lanes.ts";
import { findMovable, putMovable, readMovable } from "./movable.ts";
import { counts, history, list, view } from "./read.ts";
import { settle } from "./settle.ts";
import { createState, type State } from "./state.ts";
import { createTopics } from "./topics.ts";
import { lead, prune } from "./upkeep.ts";

export interface MemoryStoreOptions {
  readonly clock?: Clock | undefined;
  readonly random?: Random | undefined;
}

export function createMemoryStore(options: MemoryStoreOptions = {}): Store & WithMovable {
  return memoryStoreOn(createState(options.clock ?? systemClock, options.random ?? systemRandom));
}

/** The same on a state that its caller looks into. */
export function memoryStoreOn(state: State): Store & WithMovable {
  let closed = false;
  const alive = (): void => {
    if (closed) throw new MakegoodError("closed", "The memory store is closed, and what it held is gone with it.");
  };
  /** Each call runs to its end without a pause, so no other call sees half of it. */
  const on =
    <A extends unknown[], T>(call: (state: State, ...args: A) => T) =>
    async (...args: A): Promise<T> => {
      alive();
      return call(state, ...args);
    };

  return {
    traits: { name: "memory", survives: "nothing", callerTransactions: false, processes: "one", wake: "poll" },
    topics: createTopics(state, alive),
    open: async () => alive(),
    check: async () => {
      alive();
      return { lost: null };
    },
    close: async () => {
      closed = true;
      state.listeners.clear();
    },
    enqueue: on(enqueue),
    lanes: on(listLanes),
    claim: on(claim),
    extend: on(extend),
    settle: on(settle),
    reclaim: on(reclaim),
    wake(listener) {
      // A wrapper of its own for each call, so that a listener added twice is removed once.
      const heard: typeof listener = (what) => listener(what);
      state.listeners.add(heard);
      return () => state.listeners.delete(heard);
    },
    idle: on(() => {}),
    get: on(({ messages }, id) => {
      const stored = messages.get(id);
      return stored ? view(stored) : null;
    }),
    list: on(list),
    counts: on(counts),
    history: on(history),
    intervene: on(intervene),
    prune: on(prune),
    lead: on(lead),
    movable: { read: on(readMovable), find: on(findMovable), put: on(putMovable) },
  };
}
