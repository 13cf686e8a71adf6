/**
 * A store that hangs must not hang the caller: every call of the port gets a deadline, and a call without an answer fails
 * like one that was refused. What it did all the same is found later: the first put stands, and a second one changes nothing.
 */
import { MakegoodError } from "../../message/errors.ts";
import { type Clock, sleep } from "../../platform/clock.ts";
import type { DLQStore } from "../../store/redis/dlq-port/dlq-store.ts";

export async function within<T>(clock: Clock, ms: number, what: string, promise: Promise<T>): Promise<T> {
  const done = new AbortController();
  const late = sleep(clock, ms, done.signal).then((): never => {
    throw new MakegoodError("store_unavailable", `${what} did not answer within ${ms} ms`);
  });
  // When the promise wins, the sleep ends early and its error belongs to nobody.
  late.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    done.abort();
  }
}

export function withDeadline(store: DLQStore, clock: Clock, ms: number): DLQStore {
  const call = <A extends unknown[], T>(name: string, method: (...args: A) => Promise<T>) => {
    // Inside a promise, so that a store that throws at once is no different from one that rejects.
    return (...args: A): Promise<T> =>
      within(
        clock,
        ms,
        `the store's ${name}`,
        Promise.resolve().then(() => method(...args)),
      );
  };
  return {
    kind: store.kind,
    get durable() {
      return store.durable;
    },
    put: call("put", (entry, options) => store.put(entry, options)),
    get: call("get", (id) => store.get(id)),
    getReady: call("getReady", (before) => store.getReady(before)),
    delete: call("delete", (id, token) => store.delete(id, token)),
    count: call("count", () => store.count()),
    oldestEntryAgeMs: call("oldestEntryAgeMs", () => store.oldestEntryAgeMs()),
    claimForReplay: call("claimForReplay", (id, leaseMs) => store.claimForReplay(id, leaseMs)),
    releaseClaim: call("releaseClaim", (id, token) => store.releaseClaim(id, token)),
    incrementAttempt: call("incrementAttempt", (id, token, next) => store.incrementAttempt(id, token, next)),
    terminalDrop: call("terminalDrop", (id, token, reason) => store.terminalDrop(id, token, reason)),
    validatePersistence: call("validatePersistence", () => store.validatePersistence()),
  };
}
