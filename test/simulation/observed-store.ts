/**
 * The shared store as everybody reaches it: each call is made, judged and noted in the order in which the store saw it, and may be kept for
 * a comparison with another store. Nothing here fails or waits: that is the way to it (faulty-store.ts).
 */
import { isMakegoodError } from "../../src/message/errors.ts";
import type { Store } from "../../src/store/store.ts";
import type { TopicStore } from "../../src/store/topics.ts";
import type { Judge } from "./judge.ts";
import type { Entry } from "./ledger.ts";
import type { World } from "./world.ts";

/** One call as the store saw it. */
export interface Call {
  readonly atMs: number;
  readonly verb: string;
  readonly args: readonly unknown[];
  readonly answer: unknown;
  /** The code of what was thrown instead. */
  readonly thrown: string | null;
}

export interface ObserveOptions {
  readonly world: World;
  readonly judge: Judge;
  readonly inner: Store;
  /** What retention deleted: to be looked at before the next step. */
  readonly gone: Entry[];
  readonly record: ((call: Call) => void) | undefined;
}

type Verbs = Record<string, (...args: never[]) => Promise<unknown>>;

export function observe({ world, judge, inner, gone, record }: ObserveOptions): (caller: string) => Store {
  /** `judged` sees arguments and answer; `say` makes the line of the history. */
  function on<A extends unknown[], T>(
    caller: string,
    verb: string,
    call: (...args: A) => Promise<T>,
    judged: (answer: T, ...args: A) => string | undefined,
    refused?: (code: string, ...args: A) => void,
  ): (...args: A) => Promise<T> {
    return async (...args) => {
      const atMs = world.nowMs;
      try {
        const answer = await call(...args);
        const line = judged(answer, ...args);
        if (line !== undefined) world.note(`${caller} ${verb} ${line}`);
        record?.({ atMs, verb, args, answer, thrown: null });
        return answer;
      } catch (error) {
        const code = isMakegoodError(error) ? error.code : String(error);
        if (code === "closed") throw error;
        if (!isMakegoodError(error)) world.violated("I2", `${verb} threw ${code}`);
        refused?.(code, ...args);
        world.note(`${caller} ${verb} refused ${code}`);
        record?.({ atMs, verb, args, answer: null, thrown: code });
        throw error;
      }
    };
  }

  return (caller) => {
    const store = inner as unknown as Verbs & { topics: Verbs };
    const plain = (verb: string, home: Verbs) =>
      on(caller, verb, home[verb.split(".").at(-1) as string] as (...args: unknown[]) => Promise<unknown>, () => undefined);
    const messageVerbs = {
      enqueue: on(
        caller,
        "enqueue",
        inner.enqueue,
        (answer, messages, options) => {
          judge.enqueued(messages, answer, options);
          return answer.map(({ kind, id }) => `${kind}:${id}`).join(" ");
        },
        (code, messages) => judge.enqueueRefused(messages, code),
      ),
      claim: on(caller, "claim", inner.claim, (answer, request) => {
        judge.claimed(request, answer, caller);
        return answer.map(({ id, attempt, claim }) => `${id}#${attempt}@${claim.lease}`).join(" ");
      }),
      extend: on(caller, "extend", inner.extend, (answer, claims, leaseMs) => {
        judge.extended(claims, leaseMs, answer);
        return claims.map(({ lease }, i) => `${lease}:${answer[i]}`).join(" ");
      }),
      settle: on(caller, "settle", inner.settle, (answer, settles) => {
        judge.settled(settles, answer);
        return settles.map(({ id, settlement }, i) => `${id}:${settlement.kind}:${answer[i]}`).join(" ");
      }),
      reclaim: on(caller, "reclaim", inner.reclaim, (answer, request) => {
        judge.reclaimed(request, answer, caller);
        return answer.length > 0 ? answer.map(({ id, claim }) => `${id}@${claim.lease}`).join(" ") : undefined;
      }),
      intervene: on(caller, "intervene", inner.intervene, (answer, intervention) => {
        judge.intervened(intervention, answer);
        return `${intervention.action} ${intervention.id} ${answer.kind}`;
      }),
      prune: on(caller, "prune", inner.prune, (answer, request) => {
        gone.push(...judge.pruned(request, answer));
        return answer > 0 ? String(answer) : undefined;
      }),
      lead: on(caller, "lead", inner.lead, ({ held }, name, owner, ttlMs) => {
        judge.led(name, owner, ttlMs, held);
        return undefined;
      }),
    };
    const reads = Object.fromEntries(
      ["lanes", "get", "list", "counts", "history", "idle", "check", "open"].map((verb) => [verb, plain(verb, store)]),
    );
    return {
      ...(reads as unknown as Store),
      ...messageVerbs,
      traits: inner.traits,
      topics: topicVerbs(caller),
      wake: inner.wake,
      close: async () => {},
    };
  };

  function topicVerbs(caller: string): TopicStore {
    const { topics } = inner;
    const home = topics as unknown as Verbs;
    const plain = (verb: string) =>
      on(caller, `topics.${verb}`, home[verb] as (...args: unknown[]) => Promise<unknown>, () => undefined);
    const reads = Object.fromEntries(
      ["get", "list", "delete", "announce", "workers", "allot", "occupy"].map((verb) => [verb, plain(verb)]),
    );
    return {
      ...(reads as unknown as TopicStore),
      put: on(caller, "topics.put", topics.put, (answer, definition) => {
        if (answer !== "read_only") judge.topicPut(definition);
        return definition.name;
      }),
      pause: on(caller, "topics.pause", topics.pause, (_, name, paused) => {
        judge.topicHeld(name, { paused });
        return `${name} ${paused}`;
      }),
      disable: on(caller, "topics.disable", topics.disable, (_, name) => {
        judge.topicHeld(name, { disabled: true });
        return name;
      }),
      trip: on(caller, "topics.trip", topics.trip, ({ state }, name, _, __, of) => {
        judge.tripped(name, of?.tenantId ?? null);
        return `${name} ${of?.tenantId ?? "-"} ${state}`;
      }),
      probe: on(caller, "topics.probe", topics.probe, (granted, name, _, __, of) => `${name} ${of?.tenantId ?? "-"} ${granted}`),
      reset: on(caller, "topics.reset", topics.reset, (_, name, of) => `${name} ${of?.tenantId ?? "-"}`),
    };
  }
}
