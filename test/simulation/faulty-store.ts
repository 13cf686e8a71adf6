/**
 * The way of one process to the shared store: calls and answers take time, get lost or stall, hints are dropped or come late, and a leader
 * may be told that it leads although another does. The seam allows all of it; what is sent arrives even if its sender is dead by then.
 */
import { MakegoodError } from "../../src/message/errors.ts";
import type { Leadership, Store, WakeHint } from "../../src/store/store.ts";
import type { TopicStore } from "../../src/store/topics.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** How likely what is, for each call. */
export interface Faults {
  /** It fails before the store sees it. */
  readonly before: number;
  /** It happens, and the caller gets an error. */
  readonly after: number;
  /** It, or its answer, takes seconds. */
  readonly stall: number;
  /** A hint is lost. */
  readonly deaf: number;
  /** Every process that asks is told to lead (I9). */
  readonly leaders: boolean;
  /** Which calls the first three are about; null: all of them. */
  readonly verbs: readonly string[] | null;
}

export const CALM: Faults = { before: 0, after: 0, stall: 0, deaf: 0, leaders: false, verbs: null };

const STALL_MS = [500, 3_000, 8_000, 20_000];

export function faultyStore(world: World, process: SimProcess, inner: Store, faults: () => Faults): Store {
  const { net } = process;

  function call<A extends unknown[], T>(verb: string, made: (...args: A) => Promise<T>): (...args: A) => Promise<T> {
    return (...args) =>
      new Promise<T>((resolve, reject) => {
        const now = faults();
        const { before, after, stall } = now.verbs === null || now.verbs.includes(verb) ? now : CALM;
        const chance = net.next();
        const far = net.next();
        const stalled = net.chance(stall) ? net.pick(STALL_MS) : 0;
        const way = net.chance(0.5);
        // Most ways take no time at all, so that what is said at once is also tried at once.
        const wayMs = far < 0.5 ? 0 : Math.floor(far * 6) + (way ? stalled : 0);
        const backMs = (far < 0.8 ? 0 : Math.floor(far * 4)) + (way ? 0 : stalled);
        const answer = (run: () => void): void => {
          if (backMs === 0 && process.awake) run();
          else process.later(backMs, run);
        };
        const arrive = (): void => {
          if (chance < before) {
            world.note(`${process.name} ${verb} never arrived`);
            answer(() => reject(new MakegoodError("store_unavailable", `simulated: ${verb} did not arrive`)));
            return;
          }
          const lost = chance < before + after;
          const code = chance < before + after / 2 ? "outcome_unknown" : "store_unavailable";
          const unknown = (): void => reject(new MakegoodError(code, `simulated: the answer to ${verb} was lost`));
          made(...args).then(
            (value) => {
              if (process.ambush?.verb === verb && Array.isArray(value) && value.length > 0) spring(process);
              answer(lost ? unknown : () => resolve(value));
            },
            (error) => answer(() => reject(error)),
          );
        };
        if (wayMs === 0) arrive();
        else world.after(wayMs, arrive);
      });
  }

  const all = <T extends object>(home: T, verbs: readonly (keyof T & string)[], prefix = ""): T =>
    Object.fromEntries(
      verbs.map((verb) => [verb, call(prefix + verb, home[verb] as (...args: unknown[]) => Promise<unknown>)]),
    ) as unknown as T;

  const lead = call("lead", inner.lead);
  return {
    ...all(inner, MESSAGE_VERBS),
    // What is in it outlives every process here, as with a server.
    traits: { ...inner.traits, name: "simulated", survives: "power-loss", processes: "many" },
    topics: all<TopicStore>(inner.topics, TOPIC_VERBS, "topics."),
    async lead(name, owner, ttlMs, at): Promise<Leadership> {
      const told = await lead(name, owner, ttlMs, at);
      return faults().leaders && ttlMs > 0 ? { ...told, held: true, owner } : told;
    },
    wake(listener) {
      const heard = (hint: WakeHint): void => {
        if (!process.alive || net.chance(faults().deaf)) return;
        const far = net.next();
        if (far < 0.3 && process.awake) listener(hint);
        else process.later(far * 10, () => listener(hint));
      };
      const stop = inner.wake(heard);
      process.whenDead(stop);
      return stop;
    },
    close: async () => {},
  };
}

function spring(process: SimProcess): void {
  const { ambush } = process;
  process.ambush = null;
  ambush?.run();
}

const MESSAGE_VERBS = [
  ...(["open", "check", "enqueue", "lanes", "claim", "extend", "settle", "reclaim", "idle"] as const),
  ...(["get", "list", "counts", "history", "intervene", "prune"] as const),
];
const TOPIC_VERBS = [
  ...(["put", "get", "list", "delete", "pause", "disable", "trip", "probe", "reset"] as const),
  ...(["announce", "workers", "allot", "occupy"] as const),
];
