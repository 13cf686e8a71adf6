/**
 * What a worker says of itself to all others of its store, and what follows from it for a topic: whether anybody serves it, and if
 * nobody can, why. Pure; the notes come from the store and are a few seconds old.
 */
import { LIMITS } from "./limits.ts";
import type { TopicRecord } from "./topic.ts";
import { topicMatches } from "./validate.ts";

export interface WorkerNote {
  readonly owner: string;
  /** Which topics it serves. */
  readonly patterns: readonly string[];
  /** Function topics that it has the function of; null: more than are worth naming, any may be among them. */
  readonly functions: readonly string[] | null;
  /** Topics that it would serve and cannot now. */
  readonly unserved: readonly UnservedTopic[];
}

/** How the names of workers begin; others claim, too (a direct delivery, a move), and serve nobody else. */
export const WORKER = "worker-";

/** Of a worker that is at work or waits for it and said nothing, as the version before does: it may serve anything. */
export const silent = (owner: string): WorkerNote => ({ owner, patterns: ["*"], functions: null, unserved: [] });

export interface UnservedTopic {
  readonly topic: string;
  readonly code: string;
  readonly error: string;
}

/** Why nothing of a topic is attempted by anybody; `code` is a stable word. */
export interface Hold {
  readonly code: string;
  readonly reason: string;
}

/** Answers for any number of topics from one reading of the notes. */
export interface Served {
  /** Null: a worker serves it, or it is not known. */
  why(topic: Pick<TopicRecord, "name" | "sink">): Hold | null;
  /** Workers that would serve it and cannot, whether or not others can. */
  unable(name: string): readonly (Hold & { readonly owner: string })[];
}

const REASONS_SHOWN = 3;

export function servedBy(notes: readonly WorkerNote[]): Served {
  const workers = notes.map((note) => ({
    owner: note.owner,
    patterns: note.patterns,
    functions: note.functions && new Set(note.functions),
    unserved: new Map(note.unserved.map((one) => [one.topic, one])),
  }));
  return {
    why({ name, sink }) {
      const chosen = workers.filter(({ patterns }) => patterns.some((pattern) => topicMatches(pattern, name)));
      const able = sink.kind === "function" ? chosen.filter(({ functions }) => functions?.has(name) ?? true) : chosen;
      if (able.length === 0) {
        // There may be more workers than the store keeps notes of.
        if (notes.length >= LIMITS.workersMax) return null;
        return { code: "no_worker", reason: chosen.length > 0 ? NO_FUNCTION : NO_WORKER };
      }
      const reasons = able.map(({ unserved }) => unserved.get(name));
      const [first] = reasons;
      if (!first || reasons.includes(undefined)) return null;
      const texts = new Set(reasons.map((one) => (one?.code === first.code ? one.error : `${one?.code}: ${one?.error}`)));
      return { code: first.code, reason: [...texts].slice(0, REASONS_SHOWN).join("; ") };
    },
    unable: (name) =>
      workers.flatMap(({ owner, unserved }) => {
        const found = unserved.get(name);
        return found ? [{ owner, code: found.code, reason: found.error }] : [];
      }),
  };
}

const NO_WORKER = "no worker that serves this topic is running";
const NO_FUNCTION = "no worker has the function of this topic: start the process that declares it";

/** Why nothing of a topic is attempted now, for any reason; null: it is being delivered. */
export function holdOf(topic: TopicRecord, served: Served): Hold | null {
  return topicHold(topic) ?? served.why(topic);
}

/** What holds a whole topic in every process: a person, its sink or its breaker; null: nothing does. */
export function topicHold(topic: Pick<TopicRecord, "paused" | "disabledReason" | "breaker">): Hold | null {
  if (topic.paused) return { code: "topic_paused", reason: "a person paused the topic" };
  if (topic.disabledReason !== null) return { code: "sink_disabled", reason: topic.disabledReason };
  const { state, reason } = topic.breaker;
  if (state !== "closed") return { code: "breaker_open", reason: reason ?? "the topic's breaker is open" };
  return null;
}
