/**
 * Says for one worker, every few seconds and soon after a change, which topics it serves and which it cannot and why, so that any
 * process of the store can tell a topic that nobody serves. Nothing waits for it, and a store that is away hears it later.
 */
import { LIMITS } from "../message/limits.ts";
import type { UnservedTopic, WorkerNote } from "../message/worker-note.ts";
import { type Clock, inBackground, within } from "../platform/clock.ts";
import { startLoop } from "../platform/loop.ts";
import type { TopicStore } from "../store/topics.ts";
import type { TopicEntry, TopicTable } from "../topic/topic-table.ts";

export interface AnnouncerOptions {
  readonly topicStore: Pick<TopicStore, "announce">;
  readonly topics: TopicTable;
  readonly owner: string;
  readonly patterns: readonly string[];
  readonly chooses: (topic: string) => boolean;
  readonly clock: Clock;
}

export interface Announcer {
  /** Takes back what was said; not longer than a moment. */
  stop(): Promise<void>;
}

const LOOK_MS = 1_000;
const REPEAT_MS = 10_000;
/** Two words may be lost before a worker counts as gone. */
const KEPT_MS = 30_000;
const FAILED_MS = 2_000;
const STOP_MS = 1_000;
const ERROR_CHARS_MAX = 300;

export function startAnnouncer(options: AnnouncerOptions): Announcer {
  const { topicStore, clock } = options;
  let said = "";
  let saidMs = Number.NEGATIVE_INFINITY;
  const loop = startLoop({
    clock: inBackground(clock),
    step: async () => {
      const note = noteOf(options);
      const text = JSON.stringify(note);
      const nowMs = clock.monotonicMs();
      if (text === said && nowMs - saidMs < REPEAT_MS) return LOOK_MS;
      await topicStore.announce(note, KEPT_MS);
      said = text;
      saidMs = nowMs;
      return LOOK_MS;
    },
    // Who cannot say it does not deliver either, and that is told elsewhere.
    failed: () => FAILED_MS,
  });
  return {
    async stop() {
      const { owner } = options;
      const gone = loop.stop().then(() => topicStore.announce({ owner, patterns: [], functions: [], unserved: [] }, 0));
      await within(
        clock,
        gone.catch(() => {}),
        STOP_MS,
      );
    },
  };
}

function noteOf({ topics, owner, patterns, chooses }: AnnouncerOptions): WorkerNote {
  const functions: string[] = [];
  const unserved: UnservedTopic[] = [];
  for (const entry of topics.entries()) {
    if (!chooses(entry.name)) continue;
    const handle = topics.sink(entry);
    const isFunction = entry.record.sink.kind === "function";
    if (isFunction && handle) functions.push(entry.name);
    const why = whyNot(entry, handle !== null);
    if (why && (handle || !isFunction) && unserved.length < LIMITS.noteTopicsMax) unserved.push({ topic: entry.name, ...why });
  }
  return { owner, patterns, functions: functions.length > LIMITS.noteTopicsMax ? null : functions, unserved };
}

function whyNot({ rest, sinkError }: TopicEntry, hasSink: boolean): Omit<UnservedTopic, "topic"> | null {
  if (rest.why) return { code: rest.why.code, error: rest.why.error.slice(0, ERROR_CHARS_MAX) };
  if (hasSink) return null;
  return { code: "no_sink", error: sinkError?.slice(0, ERROR_CHARS_MAX) ?? "the process has no sink for this topic" };
}
