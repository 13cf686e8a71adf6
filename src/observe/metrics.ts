/**
 * Events and counts as Prometheus metrics, in a registry of our own. Labels are bounded: a topic beyond the first thousand
 * counts as `other`, and no id, key or address is ever a label. A scrape never waits for a store that hangs.
 */
import { collectDefaultMetrics, Registry } from "prom-client";
import type { BreakerState } from "../message/topic.ts";
import { auditMetrics } from "./audit-metrics.ts";
import type { Events, MakegoodEvent } from "./events.ts";
import type { Finding } from "./finding.ts";
import { recoveryMetrics } from "./recovery-metrics.ts";
import { createSeriesBook, type SeriesBook } from "./series.ts";

/** What is asked of the store, as plain values: this room does not know stores. */
export interface Levels {
  readonly messages: readonly {
    readonly topic: string;
    readonly status: string;
    readonly resolution: string | null;
    readonly count: number;
    readonly oldestMs: number | null;
  }[];
  readonly breakers: readonly {
    readonly topic: string;
    readonly state: BreakerState["state"];
    readonly paused: boolean;
    /** Why nothing of it is attempted, in a word; null: it is being delivered. */
    readonly held: string | null;
  }[];
  /** How long ago the store said so; null: it never did. */
  readonly ageMs: number | null;
  /** Whether it would accept an enqueue, as far as is known. */
  readonly up: boolean;
  /** How the store stands beside that; absent: nobody watches it. */
  readonly store?: StoreLevels | undefined;
}

export interface StoreLevels {
  readonly survives: "nothing" | "process-crash" | "power-loss";
  /** How old the last answer to the question whether it would accept is. */
  readonly checkedAgeMs: number;
  /** What lies below the primary store, by place. */
  readonly below: readonly {
    readonly place: string;
    readonly count: number;
    readonly quarantined: number;
    readonly ageMs: number;
  }[];
  readonly findings: readonly Finding[];
}

export interface MetricsOptions {
  readonly events: Events;
  readonly version: string;
  /** The last known levels; must not hang. */
  readonly levels: () => Promise<Levels>;
}

export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  close(): void;
}

const TOPICS_MAX = 1_000;
const CODES_MAX = 50;
const SURVIVES = { nothing: 0, "process-crash": 1, "power-loss": 2 } as const;
const BREAKER = { closed: 0, half_open: 1, open: 2 } as const;

export function createMetrics({ events, version, levels }: MetricsOptions): Metrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  const book = createSeriesBook();
  book.gauge("makegood_info", "The version that runs.", ["version"]).set([version], 1);
  const label = cappedLabels(TOPICS_MAX);
  const stop = countEvents(events, book, label);
  const audit = auditMetrics(events, register);
  const recovery = recoveryMetrics(events, register);
  const refresh = levelGauges(book, label, async () => {
    const now = await levels();
    audit.levels(now.messages);
    recovery.levels(now.messages);
    return now;
  });
  return {
    contentType: register.contentType,
    async text() {
      await refresh();
      return `${await register.metrics()}\n${book.text()}`;
    },
    close() {
      stop();
      audit.stop();
      recovery.stop();
      register.clear();
    },
  };
}

/** The first `max` names are labels of their own; all further names share one. */
function cappedLabels(max: number): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (known.has(name)) return name;
    if (known.size >= max) return "other";
    known.add(name);
    return name;
  };
}

function countEvents(events: Events, book: SeriesBook, label: (topic: string) => string): () => void {
  const counter = (name: string, help: string, labelNames: string[] = []) => book.counter(`makegood_${name}`, help, labelNames);
  const accepted = counter("accepted_total", "Messages accepted by this process.", ["topic"]);
  const duplicates = counter("duplicates_total", "Enqueues that met their own key again.", ["topic"]);
  const attempts = counter("attempts_total", "Attempts that ended in this process.", ["topic", "outcome"]);
  const died = counter("died_total", "Messages that became dead letters in this process.", ["topic"]);
  const unserved = counter("unserved_total", "Messages given back because this process cannot deliver them.", ["topic", "code"]);
  const claims = counter("claims_total", "Claim calls to the store.");
  const claimed = counter("claimed_messages_total", "Messages claimed.");
  const reclaimed = counter("reclaimed_total", "Messages taken over from an expired lease.");
  const claimLost = counter("claim_lost_total", "Outcomes not written because the claim was lost.", ["topic"]);
  const storeErrors = counter("store_errors_total", "Calls to the store that failed.", ["during"]);
  const lostData = counter("store_data_lost_total", "Times that a store lost what it had accepted.", ["store"]);
  const durability = counter("store_durability_changes_total", "Changes of what accepted messages survive.", [
    "store",
    "survives",
  ]);
  const trips = counter("breaker_trips_total", "Breakers opened by this process.", ["topic"]);
  const interventions = counter("interventions_total", "Replays, resolutions and discards.", ["action"]);
  const pruned = counter("pruned_total", "Settled messages deleted after their retention.");
  const redriven = counter("redrive_items_total", "Messages of redrives, by what this process saw become of them.", ["state"]);
  const direct = counter("direct_total", "Direct tries of deliver(), by what came of them.", ["topic", "outcome"]);
  const handedDown = counter("handed_down_total", "Messages that deliver() stored, by rung.", ["topic", "rung"]);
  const rungFailures = counter("rung_failures_total", "Rungs of the ladder that did not take a message.", ["rung"]);
  const drained = counter("drained_total", "Messages moved up from a lower rung.", ["rung"]);
  const quarantined = counter("quarantined_total", "Messages kept for a person because no store takes them.", ["rung"]);
  // A function may give any code.
  const codeLabel = cappedLabels(CODES_MAX);
  const buckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];
  const seconds = book.histogram("makegood_attempt_seconds", "How long attempts took.", ["topic"], buckets);
  const counted: Counted = {
    accepted({ topic, inserted, duplicate }) {
      if (inserted > 0) accepted.inc([label(topic)], inserted);
      if (duplicate > 0) duplicates.inc([label(topic)], duplicate);
    },
    claimed({ count }) {
      claims.inc();
      claimed.inc([], count);
    },
    attempt(event) {
      const topic = label(event.topic);
      attempts.inc([topic, event.outcome]);
      seconds.observe([topic], event.ms / 1_000);
      if (event.status === "dead") died.inc([topic]);
    },
    unserved: ({ topic, code }) => unserved.inc([label(topic), codeLabel(code)]),
    breaker({ topic, state }) {
      if (state === "open") trips.inc([label(topic)]);
    },
    direct: ({ topic, outcome }) => direct.inc([label(topic), outcome]),
    handed_down: ({ topic, rung }) => handedDown.inc([label(topic), rung]),
    rung_failed: ({ rung }) => rungFailures.inc([rung]),
    drained: ({ rung, moved }) => drained.inc([rung], moved),
    quarantined: ({ rung }) => quarantined.inc([rung]),
    claim_lost: ({ topic }) => claimLost.inc([label(topic)]),
    reclaimed: ({ count }) => reclaimed.inc([], count),
    store_error: ({ during }) => storeErrors.inc([during]),
    store_lost_data: ({ store }) => lostData.inc([store]),
    durability: ({ store, survives }) => durability.inc([store, survives]),
    intervened: ({ action }) => interventions.inc([action]),
    pruned: ({ count }) => pruned.inc([], count),
    redrive({ changed }) {
      for (const state of ["sent", "healed", "failed", "skipped"] as const) redriven.inc([state], changed[state]);
    },
  };
  return events.on((event) => (counted[event.type] as ((event: MakegoodEvent) => void) | undefined)?.(event));
}

/** What is counted at each kind of event. */
type Counted = { [T in MakegoodEvent["type"]]?: (event: Extract<MakegoodEvent, { type: T }>) => void };

function levelGauges(book: SeriesBook, label: (topic: string) => string, levels: () => Promise<Levels>) {
  const gauge = (name: string, help: string, labelNames: string[] = []) => book.gauge(`makegood_${name}`, help, labelNames);
  const messages = gauge("messages", "Messages by topic and status.", ["topic", "status"]);
  const deadLetters = gauge("dead_letters", "Open dead letters.", ["topic"]);
  const oldest = gauge("oldest_pending_seconds", "Age of the oldest pending message.", ["topic"]);
  const breaker = gauge("breaker_state", "0 closed, 1 half open, 2 open.", ["topic"]);
  const paused = gauge("topic_paused", "1 while a topic is paused.", ["topic"]);
  const up = gauge("store_up", "1 when the store would accept an enqueue.");
  const survives = gauge("store_survives", "What accepted messages survive: 0 nothing, 1 a process crash, 2 a power loss.");
  const checked = gauge("store_checked_age_seconds", "How long ago the store last said whether it would accept.");
  const findings = gauge("findings", "What is not as it should be, by kind; see /health.", ["what", "severity"]);
  const held = gauge("topic_held", "1 while nothing of a topic is attempted, by why.", ["topic", "code"]);
  const codeLabel = cappedLabels(CODES_MAX);
  const below = gauge("held_below", "Messages that lie below the primary store, by place.", ["place", "state"]);
  const belowAge = gauge("held_below_oldest_seconds", "Age of the oldest message below the primary store.", ["place"]);
  const age = gauge("levels_age_seconds", "How old the numbers of the store are.");

  return async function refresh(): Promise<void> {
    const now = await levels();
    for (const one of [messages, deadLetters, oldest, breaker, paused, held, findings]) one.reset();
    for (const { topic, status, resolution, count, oldestMs } of now.messages) {
      const name = label(topic);
      messages.inc([name, status], count);
      if (status === "dead" && resolution === "open") deadLetters.inc([name], count);
      if (status === "pending") oldest.set([name], (oldestMs ?? 0) / 1_000);
    }
    for (const one of now.breakers) {
      breaker.set([label(one.topic)], BREAKER[one.state]);
      paused.set([label(one.topic)], one.paused ? 1 : 0);
      if (one.held !== null) held.set([label(one.topic), codeLabel(one.held)], 1);
    }
    up.set([], now.up ? 1 : 0);
    if (now.store) {
      survives.set([], SURVIVES[now.store.survives]);
      checked.set([], now.store.checkedAgeMs / 1_000);
      for (const { place, count, quarantined, ageMs } of now.store.below) {
        below.set([place, "waiting"], count);
        below.set([place, "quarantined"], quarantined);
        belowAge.set([place], ageMs / 1_000);
      }
      for (const { what, severity } of now.store.findings) findings.inc([what, severity]);
    }
    age.set([], now.ageMs === null ? Number.NaN : now.ageMs / 1_000);
  };
}
