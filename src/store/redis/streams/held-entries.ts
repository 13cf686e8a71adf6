/**
 * The entries that an inlet holds, and how each leaves: accepted and then ended, or quarantined and then ended. A step that fails
 * leaves its entry held for the next round; an entry that was accepted is not accepted again only because ending it failed.
 */
import { errorText, isMakegoodError, MakegoodError } from "../../../message/errors.ts";
import { type Clock, sleep } from "../../../platform/clock.ts";
import { runLua } from "../lua.ts";
import { type StreamEntry, toEntries } from "./entries.ts";
import type { Group } from "./group.ts";
import { entryKey, type InletMessage, type InletNotice, type InletOptions, type InletSettings } from "./inlet-options.ts";
import { QUARANTINE, SETTLE } from "./scripts.ts";

type Stage =
  | { readonly kind: "accept"; readonly message: InletMessage }
  | { readonly kind: "settle" }
  | { readonly kind: "quarantine"; readonly code: string; readonly reason: string };

export interface Held {
  readonly entry: StreamEntry;
  readonly deliveries: number;
  stage: Stage;
}

const REASON_MAX = 256;

export interface HeldEntriesParts {
  readonly group: Group;
  readonly options: InletOptions;
  readonly settings: InletSettings;
  readonly clock: Clock;
  readonly tell: (notice: InletNotice) => void;
  /** Aborts when the inlet's time to stop is over. */
  readonly signal: AbortSignal;
}

export function createHeldEntries({ group, options, settings, clock, tell, signal }: HeldEntriesParts) {
  const held = new Map<string, Held>();
  const { stream } = group;

  const idsOf = (list: readonly Held[]): string[] => list.map(({ entry }) => entry.id);
  const inStage = (kind: Stage["kind"], list: Iterable<Held>): Held[] => [...list].filter(({ stage }) => stage.kind === kind);

  function take(entry: StreamEntry, deliveries: number, exhausted: boolean): void {
    held.set(entry.id, { entry, deliveries, stage: exhausted ? worn(deliveries) : understood(entry) });
  }

  function understood(entry: StreamEntry): Stage {
    try {
      const message = options.read(entry);
      return { kind: "accept", message: { ...message, key: message.key ?? entryKey(stream, entry.id) } };
    } catch (error) {
      return { kind: "quarantine", code: isMakegoodError(error) ? error.code : "malformed", reason: short(error) };
    }
  }

  async function accept(list: readonly Held[]): Promise<{ readonly error: unknown } | "committed"> {
    const messages = list.flatMap(({ stage }) => (stage.kind === "accept" ? [stage.message] : []));
    const over = new AbortController();
    const stop = (): void => over.abort();
    signal.addEventListener("abort", stop, { once: true });
    try {
      const late = sleep(clock, settings.acceptTimeoutMs, over.signal).then(() => {
        // Counts as an outage: tried one by one, a store that hangs would cost each entry of the batch a whole wait.
        throw new MakegoodError("outcome_unknown", `not accepted within ${settings.acceptTimeoutMs} ms`);
      });
      await Promise.race([options.accept(messages, over.signal), late]);
      return "committed";
    } catch (error) {
      return { error };
    } finally {
      over.abort();
      signal.removeEventListener("abort", stop);
    }
  }

  async function acceptAll(list: readonly Held[]): Promise<void> {
    if (list.length === 0) return;
    const result = await accept(list);
    if (result === "committed") {
      for (const one of list) one.stage = { kind: "settle" };
      return;
    }
    const { error } = result;
    const condemned = isMakegoodError(error) && !error.retryable && error.code !== "closed";
    const outage = isMakegoodError(error) && !condemned;
    if (list.length > 1 && !outage && !signal.aborted) {
      // One of them may be at fault: each by itself, so that the others go on.
      for (const one of list) await acceptAll([one]);
      return;
    }
    if (condemned) for (const one of list) one.stage = { kind: "quarantine", code: error.code, reason: short(error) };
    else tell({ what: "accept_failed", ids: idsOf(list), error: short(error) });
  }

  async function settleAll(list: readonly Held[]): Promise<void> {
    if (list.length === 0) return;
    const ids = idsOf(list);
    try {
      await runLua(group.redis, SETTLE, [stream], [group.group, ...ids]);
    } catch (error) {
      return tell({ what: "settle_failed", ids, error: short(error) });
    }
    for (const id of ids) held.delete(id);
  }

  async function quarantine({ entry, deliveries, stage }: Held): Promise<void> {
    if (stage.kind !== "quarantine") return;
    const { code, reason } = stage;
    try {
      if (options.onMalformed) {
        await options.onMalformed({ stream, group: group.group, entry, code, reason, deliveries });
        await runLua(group.redis, SETTLE, [stream], [group.group, entry.id]);
      } else {
        const copy = await runLua(group.redis, QUARANTINE, [stream, settings.deadStream], [group.group, entry.id, code, reason]);
        await showQuarantined(String(copy));
      }
    } catch (error) {
      return tell({ what: "quarantine_failed", ids: [entry.id], error: short(error) });
    }
    held.delete(entry.id);
    tell({ what: "quarantined", id: entry.id, code, reason });
  }

  /** It is safe where it is: that it is seen elsewhere as well must not hold it up. */
  async function showQuarantined(copy: string): Promise<void> {
    const { deadStream } = settings;
    if (copy === "" || !options.onQuarantined) return;
    try {
      const [entry] = toEntries(await group.redis.send(deadStream, ["XRANGE", deadStream, copy, copy]));
      if (entry) await options.onQuarantined(deadStream, entry);
    } catch (error) {
      tell({ what: "show_failed", ids: [copy], error: short(error) });
    }
  }

  return {
    held,
    take,
    /** One round for these entries; those that fail stay held. */
    async work(list: readonly Held[]): Promise<void> {
      const wanted = inStage("accept", list);
      await acceptAll(wanted);
      const done = inStage("settle", wanted);
      if (done.length > 0) tell({ what: "accepted", ids: idsOf(done) });
      await settleAll(inStage("settle", list));
      for (const one of inStage("quarantine", list)) await quarantine(one);
    },
  };
}

function worn(deliveries: number): Stage {
  const reason = `handed out ${deliveries - 1} times, and each time its consumer died: look at it before you replay it`;
  return { kind: "quarantine", code: "reclaims_exhausted", reason };
}

/** An error's text is for people and may carry anything: one line, bounded (DA-25). */
function short(error: unknown): string {
  return errorText(error).replace(/\s+/g, " ").slice(0, REASON_MAX);
}
