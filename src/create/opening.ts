/**
 * The primary store's way to being open: at the start, or in the background for as long as it takes. Until then it is a store that is away:
 * declared topics are known, deliver() goes down the ladder, and enqueue() waits for a moment and is then told so.
 */
import { errorText, isMakegoodError, MakegoodError } from "../message/errors.ts";
import { BREAKER_CLOSED, type TopicDefinition, type TopicRecord } from "../message/topic.ts";
import { inBackground, sleep, within } from "../platform/clock.ts";
import { once } from "../platform/once.ts";
import { sharedAbort } from "../platform/shared-abort.ts";
import type { Store } from "../store/store.ts";
import type { AnyTopic } from "../topic/topic.ts";
import { type TopicTable, UNDECLARED } from "../topic/topic-table.ts";
import type { FallbackOptions, FallbackParts } from "./open-fallback.ts";

export interface Opening {
  /** Whether the store is open and the topics are declared in it. */
  opened(): boolean;
  /** Tries to open it, or joins the try that is under way. */
  ready(): Promise<void>;
  /** Rejects with what keeps the store from being used at all, with the signal's reason, or as `closed`; a store that is away is waited for. */
  whenOpened(signal?: AbortSignal): Promise<void>;
  start(somethingBelow: boolean): Promise<void>;
  stop(): void;
}

const REOPEN_MS = 500;
const REOPEN_MS_MAX = 5_000;

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

export function createOpening(options: FallbackOptions, parts: FallbackParts): Opening {
  const { store, topics, declared, events, clock } = parts;
  const { openWithinMs } = options;
  const stopping = sharedAbort();
  const waiters = new Set<Waiter>();
  let opened = false;
  let late = false;
  let refused: { readonly error: unknown } | null = null;
  const ready = once(async () => {
    await store.open();
    await declareTopics(store, topics, declared, sourceOf(options));
    await options.whenOpen?.(store);
    opened = true;
    if (late) events.emit({ type: "lifecycle", what: "store_opened", detail: { store: store.traits.name } });
    for (const { resolve } of waiters) resolve();
  });

  function failed(error: unknown, consecutive: number): void {
    events.emit({ type: "store_error", during: "open", error: errorText(error), consecutive });
    if (isAway(error) && !refusesUs(error)) {
      refused = null;
      return;
    }
    const reported = refused !== null;
    refused = { error };
    for (const { reject } of waiters) reject(error);
    if (!reported) options.storeRefused?.(error);
  }

  /** Until it has succeeded; an operator may also mend what looks final. `first`: what went wrong already; null: it only takes its time. */
  async function inTime(first: { readonly error: unknown } | null): Promise<void> {
    let before = first;
    for (let failures = 1; !stopping.signal.aborted; failures++) {
      if (before) {
        failed(before.error, failures);
        await sleep(inBackground(clock), Math.min(REOPEN_MS_MAX, REOPEN_MS * failures), stopping.signal);
        if (stopping.signal.aborted) return;
      }
      try {
        return await ready();
      } catch (error) {
        before = { error };
      }
    }
  }

  return {
    ready,
    opened: () => opened,
    whenOpened(signal) {
      if (opened) return Promise.resolve();
      if (refused) return Promise.reject(refused.error);
      if (stopping.signal.aborted) return Promise.reject(closedError());
      return new Promise((resolve, reject) => {
        const aborted = (): void => waiter.reject(signal?.reason);
        const over = (): void => {
          waiters.delete(waiter);
          signal?.removeEventListener("abort", aborted);
        };
        const waiter: Waiter = {
          resolve: () => {
            over();
            resolve();
          },
          reject: (error) => {
            over();
            reject(error);
          },
        };
        waiters.add(waiter);
        signal?.addEventListener("abort", aborted, { once: true });
        if (signal?.aborted) aborted();
      });
    },
    stop() {
      stopping.abort();
      for (const { reject } of waiters) reject(closedError());
    },
    async start(somethingBelow) {
      let missing: { readonly error: unknown } | null = null;
      try {
        const open = ready().then(() => true);
        if (await (openWithinMs === undefined ? open : within(clock, open, openWithinMs))) return;
      } catch (error) {
        const waits = options.startsWithoutStore || openWithinMs !== undefined ? !refusesUs(error) : somethingBelow;
        if (options.startsWithoutStore !== "even-refused" && (!isAway(error) || !waits)) throw error;
        missing = { error };
      }
      for (const { name, definition } of declared.values()) {
        if (!topics.entry(name)) topics.learn(undeclared(definition, sourceOf(options)));
      }
      late = true;
      if (openWithinMs && !missing) failed(away(`it is not open after ${openWithinMs} ms`), 1);
      void inTime(missing);
    },
  };
}

const away = (text: string): MakegoodError => new MakegoodError("store_unavailable", text);

const closedError = (): MakegoodError => new MakegoodError("closed", "this Makegood was closed before its store was open");

export const sourceOf = ({ topicSource = "code" }: FallbackOptions): "code" | "file" => topicSource;

const isAway = (error: unknown): boolean => isMakegoodError(error) && error.retryable;

/** The server is there and does not let us in, or has no such database: waiting would only hide a mistake. */
function refusesUs(error: unknown): boolean {
  if (!isMakegoodError(error)) return false;
  const state = String(error.detail.sqlState ?? error.detail.reply ?? "");
  return /^(28P01|28000|3D000|NOAUTH|WRONGPASS|NOPERM)$/.test(state) || /\b(NOAUTH|WRONGPASS)\b/.test(error.message);
}

async function declareTopics(
  store: Store,
  table: TopicTable,
  declared: ReadonlyMap<string, AnyTopic>,
  source: "code" | "file",
): Promise<void> {
  for (const { name, definition, sendsOnly } of declared.values()) {
    const stored = sendsOnly ? await store.topics.get(name) : null;
    const record = stored ?? (await store.topics.put(definition, source));
    if (record !== "read_only") table.learn(record);
  }
}

/** A declared topic as it will be, while the store that keeps its state cannot be asked. */
function undeclared(definition: TopicDefinition, source: "code" | "file"): TopicRecord {
  return { ...definition, source, revision: UNDECLARED, paused: false, disabledReason: null, breaker: BREAKER_CLOSED };
}
