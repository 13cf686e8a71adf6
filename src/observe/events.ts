/**
 * Facts out, never control in: each step of the walk emits one event; metrics, log and live views listen. A listener that
 * throws is cut off from nothing but its own event, and emitting with no listener costs one comparison.
 */
import type { AttemptOutcome } from "../message/message.ts";
import type { RetiredName } from "../message/retained.ts";
import type { BreakerState } from "../message/topic.ts";
import { tell } from "../platform/tell.ts";
import type { Spans } from "./spans.ts";

export type MakegoodEvent =
  | { readonly type: "accepted"; readonly topic: string; readonly inserted: number; readonly duplicate: number }
  | { readonly type: "claimed"; readonly count: number; readonly ms: number }
  | {
      readonly type: "attempt";
      readonly topic: string;
      readonly id: string;
      readonly attempt: number;
      readonly outcome: AttemptOutcome;
      readonly status: "delivered" | "pending" | "dead" | "held";
      readonly ms: number;
      readonly code: string | null;
      readonly error: string | null;
      readonly alert: boolean;
    }
  /**
   * This process cannot deliver it: back to others, no attempt spent. `restMs`: how long it leaves the topic alone, said once.
   */
  | {
      readonly type: "unserved";
      readonly topic: string;
      readonly id: string;
      readonly code: string;
      readonly error: string;
      readonly restMs: number | null;
    }
  /** The outcome was not written: another worker owns the message now. */
  | { readonly type: "claim_lost"; readonly topic: string; readonly id: string; readonly attempt: number }
  | { readonly type: "reclaimed"; readonly count: number }
  | {
      readonly type: "breaker";
      readonly topic: string;
      readonly state: BreakerState["state"];
      readonly reason: string | null;
      /** Only this tenant is held, or let go; absent: the whole topic. */
      readonly tenantId?: string | undefined;
    }
  | { readonly type: "sink_disabled"; readonly topic: string; readonly reason: string }
  | {
      readonly type: "intervened";
      readonly id: string;
      readonly action: string;
      readonly actor: string;
      readonly reason: string | null;
    }
  /** One write of an audit record, as the endpoint or the client saw it end. */
  | {
      readonly type: "audit";
      readonly auditType: string;
      readonly result: "success" | "fallback" | "validation_error" | "failed";
      readonly code: string | null;
    }
  /** Failures that were handed to the recovery engine together, and what came of it. */
  | {
      readonly type: "recovery_ingest";
      readonly source: "api" | "worker" | "stream";
      readonly status: "accepted" | "duplicate" | "error";
      readonly count: number;
      /** Evaluations that were queued with them. */
      readonly queued: number;
      readonly ms: number | null;
      /** How a duplicate was known. */
      readonly detection: "idempotency_key" | "failure_match_id" | null;
    }
  /** A redrive changed its status or got on; `changed`: what this process saw happen since its last event. */
  | {
      readonly type: "redrive";
      readonly id: string;
      readonly candidateId: number | null;
      readonly status: "planned" | "running" | "paused" | "stopped" | "cancelled" | "done";
      readonly reason: string | null;
      readonly counts: RedriveNumbers;
      readonly changed: RedriveNumbers;
    }
  | { readonly type: "pruned"; readonly count: number }
  /** A maintenance job ended, in the loop or by hand. `skipped`: another process holds what it needs. */
  | {
      readonly type: "job";
      readonly name: string;
      readonly result: "done" | "skipped" | "failed" | "stopped";
      readonly ms: number;
      readonly counts: Readonly<Record<string, number>>;
      readonly error: string | null;
    }
  /** A named lock of a job; `ms`: how long it was held, where it ended. */
  | {
      readonly type: "lock";
      readonly name: string;
      readonly what: "acquired" | "failed" | "extended" | "released" | "lost";
      readonly ms: number | null;
    }
  /** Records that went to an archive, and such as were deleted past their retention, by class (`delivered`, `occurrences`, …). */
  | { readonly type: "archived"; readonly class: RetiredName; readonly count: number; readonly bytes: number }
  | { readonly type: "retired"; readonly class: RetiredName; readonly count: number }
  /** A pass of conservation ended. `unknown`: it could not be proven, which is not the same as broken. */
  | {
      readonly type: "conservation";
      readonly state: "whole" | "broken" | "unknown";
      readonly divergences: number;
      readonly reason: string | null;
      readonly ms: number;
    }
  /** A block of tamper evidence was sealed; `anchored`: its note was also written outside the database. */
  | { readonly type: "evidence"; readonly block: string; readonly rows: number; readonly anchored: boolean }
  /** deliver() tried the sink itself. */
  | {
      readonly type: "direct";
      readonly topic: string;
      readonly id: string;
      readonly outcome: string;
      readonly tries: number;
      readonly ms: number;
      readonly code: string | null;
      readonly error: string | null;
    }
  /** deliver() stored a message; `none`: nothing took it, and its text is in the ERROR log only. */
  | {
      readonly type: "handed_down";
      readonly topic: string;
      readonly id: string;
      readonly rung: "primary" | "secondary" | "journal" | "memory" | "none";
      readonly survives: string;
      readonly code: string | null;
    }
  | { readonly type: "rung_failed"; readonly rung: string; readonly error: string }
  /** What waited below was moved up. */
  | {
      readonly type: "drained";
      readonly rung: string;
      readonly moved: number;
      readonly duplicates: number;
      readonly conflicts: number;
    }
  /** On its way up it met its own key and payload: message `by` stands, and nothing was stored again. */
  | {
      readonly type: "absorbed";
      readonly rung: string;
      readonly topic: string;
      readonly id: string;
      readonly key: string | null;
      readonly by: string;
    }
  /** No store takes it as it is: kept below for a person. */
  | {
      readonly type: "quarantined";
      readonly rung: string;
      readonly topic: string;
      readonly id: string;
      readonly key: string | null;
      readonly reason: string;
    }
  | {
      readonly type: "journal_note";
      readonly what: string;
      readonly file: string;
      readonly offset?: number | undefined;
      readonly bytes?: number | undefined;
      readonly detail?: string | undefined;
    }
  /** A store's own word on what an accepted message survives has changed while it was in use. */
  | { readonly type: "durability"; readonly store: string; readonly survives: string; readonly before: string }
  /** What a store had accepted is gone. */
  | { readonly type: "store_lost_data"; readonly store: string; readonly what: string }
  /** `store`: which of them failed; absent: the primary one. */
  | {
      readonly type: "store_error";
      readonly store?: "primary" | "secondary" | "journal" | "memory" | undefined;
      readonly during: string;
      readonly error: string;
      readonly consecutive: number;
    }
  | { readonly type: "lifecycle"; readonly what: string; readonly detail?: Readonly<Record<string, unknown>> | undefined };

export interface RedriveNumbers {
  readonly selected: number;
  readonly waiting: number;
  readonly sent: number;
  readonly healed: number;
  readonly failed: number;
  readonly skipped: number;
}

export type EventListener = (event: MakegoodEvent) => void;

export interface Events {
  emit(event: MakegoodEvent): void;
  /** `seldom`: for a listener that does not need each message that was accepted or delivered; it may get some. */
  on(listener: EventListener, options?: { readonly seldom?: boolean | undefined }): () => void;
  /** False lets a hot path skip building an event nobody needs. */
  readonly heard: boolean;
  /** Who is told where a step begins and ends; null: nobody. */
  readonly spans: Spans | null;
}

/** The same events, with the name of the store that their emitter works on. */
export function eventsOf(events: Events, store: "secondary" | "journal" | "memory"): Events {
  return {
    get heard() {
      return events.heard;
    },
    emit: (event) => events.emit(event.type === "store_error" ? { ...event, store } : event),
    on: events.on,
    spans: events.spans,
  };
}

/** So many notes of a start are told to who comes later. */
const EARLY_MAX = 100;

/**
 * What the journal finds when it is opened is found before anyone outside can listen: a listener that comes after `over` is told it first. Other
 * events of a start are said again by levels and findings.
 */
export function keepEarly(events: Events): { over(): Events } {
  const early: MakegoodEvent[] = [];
  const stop = events.on(
    (event) => {
      if (event.type === "journal_note" && early.length < EARLY_MAX) early.push(event);
    },
    { seldom: true },
  );
  return {
    over() {
      stop();
      if (early.length === 0) return events;
      return {
        get heard() {
          return events.heard;
        },
        spans: events.spans,
        emit: events.emit,
        on(listener, how) {
          for (const event of early) tell(() => listener(event));
          return events.on(listener, how);
        },
      };
    },
  };
}

export function createEvents(spans: Spans | null = null): Events {
  const listeners = new Set<EventListener>();
  const always = new Set<EventListener>();
  return {
    spans,
    get heard() {
      return always.size > 0;
    },
    emit(given) {
      const event = given.type === "store_error" && !given.store ? ({ ...given, store: "primary" } as const) : given;
      for (const listener of listeners) {
        // As tell() does, without a function for each event. A broken listener must not change what happens to a message, nor end the process.
        try {
          const answer: unknown = listener(event);
          if (answer instanceof Promise) answer.catch(() => {});
        } catch {}
      }
    },
    on(listener, { seldom = false } = {}) {
      listeners.add(listener);
      if (!seldom) always.add(listener);
      return () => {
        listeners.delete(listener);
        always.delete(listener);
      };
    },
  };
}
