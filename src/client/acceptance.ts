/**
 * From messages to accepted ones: one store call, tried again with the same ids when its COMMIT is in doubt, so that the
 * result is one row whatever was lost on the way. Inside the caller's transaction nothing is tried twice.
 */
import { errorText, MakegoodError } from "../message/errors.ts";
import type { Accepted, NewMessage } from "../message/message.ts";
import type { Events } from "../observe/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import { sharedAbort } from "../platform/shared-abort.ts";
import { UnderWay } from "../platform/under-way.ts";
import type { Store, Transaction } from "../store/store.ts";
import { persistently } from "./persistently.ts";
import type { StoreWatch } from "./store-watch.ts";

export interface AcceptanceOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Events;
  /** Hears what an enqueue was refused with, and that one was accepted: what the store says of itself is one thing, this is another. */
  readonly watch: Pick<StoreWatch, "refused" | "accepted">;
}

export interface Acceptance {
  /** All of them or none. `accepted` also when an earlier try of the same call turns out to have been committed. */
  accept(messages: readonly NewMessage[], tx?: Transaction, signal?: AbortSignal): Promise<Accepted[]>;
  /** Resolves when nothing is under way; afterwards everything is refused as `closed`. */
  close(): Promise<void>;
}

export function createAcceptance({ store, clock, random, events, watch }: AcceptanceOptions): Acceptance {
  const closing = sharedAbort();
  const underWay = new UnderWay();

  function write(messages: readonly NewMessage[], signal?: AbortSignal): Promise<Accepted[]> {
    const again = (error: unknown, failed: number): boolean => {
      if (closing.signal.aborted) return false;
      events.emit({ type: "store_error", during: "enqueue", error: errorText(error), consecutive: failed });
      return true;
    };
    return persistently({ clock, random, signal: signal ?? closing.signal, again }, async (failed) => {
      signal?.throwIfAborted();
      try {
        const results = await store.enqueue(messages);
        watch.accepted();
        return failed === 0 ? results : results.map((result, i) => ownRow(result, messages[i] as NewMessage));
      } catch (error) {
        watch.refused(error);
        throw error;
      }
    });
  }

  return {
    accept(messages, tx, signal) {
      if (closing.signal.aborted) {
        return Promise.reject(new MakegoodError("closed", "this Makegood was closed and accepts nothing more"));
      }
      // Inside the caller's transaction a failed statement has already undone it: only the caller can try again.
      const work = tx ? store.enqueue(messages, { tx }) : write(messages, signal);
      underWay.add(work);
      return work;
    },
    async close() {
      closing.abort();
      await underWay.over();
    },
  };
}

/** A row that carries this call's own id was written by this call, in a try whose answer was lost. */
function ownRow(result: Accepted, message: NewMessage): Accepted {
  return result.kind === "duplicate" && result.id === message.id ? { kind: "accepted", id: result.id } : result;
}
