/**
 * Events and levels as Prometheus metrics: the table says which there are, this file what each event adds and where each level goes. No
 * id, key or address is ever a label. A scrape never waits for a store that hangs, and what is not known is left out of it.
 */
import { collectDefaultMetrics, Registry } from "prom-client";
import type { BreakerState } from "../message/topic.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import { auditCounts, auditLevels } from "./audit-metrics.ts";
import { type Book, type Counted, createBook, type MessageLevel } from "./book.ts";
import type { Events, MakegoodEvent } from "./events.ts";
import type { Finding } from "./finding.ts";
import { healingCounts, healingLevels } from "./healing-metrics.ts";
import type { Level } from "./level-sources.ts";
import { upkeepCounts } from "./upkeep-metrics.ts";

/** What is asked of the store, as plain values: this room does not know stores. Null: not known. */
export interface Levels {
  readonly messages: readonly MessageLevel[] | null;
  readonly breakers:
    | readonly {
        readonly topic: string;
        readonly state: BreakerState["state"];
        readonly paused: boolean;
        /** Why nothing of it is attempted, in a word; null: it is being delivered. */
        readonly held: string | null;
      }[]
    | null;
  /** How long ago the store said so; null: it never did. */
  readonly ageMs: number | null;
  /** Whether it would accept an enqueue, as far as is known. */
  readonly up: boolean | null;
  /** How the store stands beside that; absent: nobody watches it. */
  readonly store?: StoreLevels | undefined;
  /** When certificates of receivers, by topic, and tokens, by name, end. */
  readonly certificates?: readonly Expiry[] | undefined;
  readonly tokens?: readonly Expiry[] | undefined;
  /** Of the sources that rooms give. */
  readonly given?: readonly Level[] | undefined;
  readonly sources?: readonly { readonly name: string; readonly up: boolean }[] | undefined;
}

export interface Expiry {
  readonly name: string;
  readonly expiresMs: number;
}

type Survives = "nothing" | "process-crash" | "power-loss";

export interface StoreLevels {
  readonly survives: Survives;
  readonly certificateEndsMs?: number | null | undefined;
  /** How old the last answer to the question whether it would accept is; null: it was not asked yet. */
  readonly checkedAgeMs: number | null;
  readonly ladder: { readonly primaryUp: boolean; readonly survives: Survives; readonly journalRefuses: boolean };
  /** What lies below the primary store, by place; a place of which it is not known is not here. */
  readonly below: readonly {
    readonly place: string;
    readonly count: number;
    readonly quarantined: number;
    /** Null: nothing lies there. */
    readonly ageMs: number | null;
  }[];
  readonly findings: readonly Finding[];
}

export interface MetricsOptions {
  readonly events: Events;
  readonly version: string;
  /** The last known levels; must not hang. */
  readonly levels: () => Promise<Levels>;
  readonly clock?: Clock | undefined;
}

export interface Metrics {
  readonly contentType: string;
  text(): Promise<string>;
  close(): void;
}

const SURVIVES: Readonly<Record<Survives, number>> = { nothing: 0, "process-crash": 1, "power-loss": 2 };
const CERTIFICATE = "makegood_certificate_expires_timestamp_seconds";
const STORE_CERTIFICATE = "makegood_store_certificate_expires_timestamp_seconds";
const TOKEN = "makegood_token_expires_timestamp_seconds";
const BREAKER = { closed: 0, half_open: 1, open: 2 } as const;

export function createMetrics({ events, version, levels, clock = systemClock }: MetricsOptions): Metrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  const { book, text, levelSeries } = createBook();
  const healing = healingCounts(book, clock);
  const counted = [deliveryCounts(book), storeCounts(book), upkeepCounts(book), auditCounts(book, clock), healing.counted];
  const stop = events.on((event) => {
    for (const one of counted) (one[event.type] as ((event: MakegoodEvent) => void) | undefined)?.(event);
  });
  return {
    contentType: register.contentType,
    async text() {
      const now = await levels();
      for (const series of levelSeries) series.reset();
      book.of("makegood_info").set([version], 1);
      showMessages(book, now);
      showStore(book, now);
      const { certificates = [], tokens = [] } = now;
      for (const { name, expiresMs } of certificates) book.of(CERTIFICATE).set([name], expiresMs / 1_000);
      for (const { name, expiresMs } of tokens) book.of(TOKEN).set([name], expiresMs / 1_000);
      healing.age();
      for (const { name, value, labels = [] } of now.given ?? []) book.of(name).set(labels, value);
      for (const { name, up } of now.sources ?? []) book.of("makegood_source_up").set([name], up ? 1 : 0);
      return `${await register.metrics()}\n${text()}`;
    },
    close() {
      stop();
      register.clear();
    },
  };
}

function deliveryCounts({ of, durations }: Book): Counted {
  const attempts = of("makegood_attempts_total");
  const seconds = durations("makegood_attempt_seconds");
  const accepted = of("makegood_accepted_total");
  return {
    accepted({ topic, inserted, duplicate }) {
      if (inserted > 0) accepted.inc([topic], inserted);
      if (duplicate > 0) of("makegood_duplicates_total").inc([topic], duplicate);
    },
    claimed({ count }) {
      of("makegood_claims_total").inc();
      of("makegood_claimed_messages_total").inc([], count);
    },
    attempt({ topic, outcome, ms, status }) {
      attempts.inc([topic, outcome]);
      seconds.observe([topic], ms / 1_000);
      if (status === "dead") of("makegood_died_total").inc([topic]);
    },
    unserved: ({ topic, code }) => of("makegood_unserved_total").inc([topic, code]),
    breaker({ topic, state }) {
      if (state === "open") of("makegood_breaker_trips_total").inc([topic]);
    },
    sink_disabled: ({ topic }) => of("makegood_sinks_disabled_total").inc([topic]),
    direct: ({ topic, outcome }) => of("makegood_direct_total").inc([topic, outcome]),
    claim_lost: ({ topic }) => of("makegood_claim_lost_total").inc([topic]),
    reclaimed: ({ count }) => of("makegood_reclaimed_total").inc([], count),
    intervened: ({ action }) => of("makegood_interventions_total").inc([action]),
  };
}

function storeCounts({ of }: Book): Counted {
  return {
    handed_down: ({ topic, rung }) => of("makegood_handed_down_total").inc([topic, rung]),
    rung_failed: ({ rung }) => of("makegood_rung_failures_total").inc([rung]),
    drained: ({ rung, moved }) => of("makegood_drained_total").inc([rung], moved),
    absorbed: ({ rung }) => of("makegood_absorbed_total").inc([rung]),
    quarantined: ({ rung }) => of("makegood_quarantined_total").inc([rung]),
    journal_note: ({ what }) => of("makegood_journal_notes_total").inc([what]),
    store_error: ({ during }) => of("makegood_store_errors_total").inc([during]),
    store_lost_data: ({ store }) => of("makegood_store_data_lost_total").inc([store]),
    durability: ({ store, survives }) => of("makegood_store_durability_changes_total").inc([store, survives]),
  };
}

function showMessages(book: Book, { messages, breakers, ageMs }: Levels): void {
  const { of } = book;
  if (ageMs !== null) of("makegood_levels_age_seconds").set([], ageMs / 1_000);
  for (const { topic, status, resolution, count, oldestMs } of messages ?? []) {
    of("makegood_messages").inc([topic, status], count);
    const open = status === "dead" && resolution === "open";
    if (open) of("makegood_dead_letters").inc([topic], count);
    const oldest = open ? "makegood_oldest_dead_letter_seconds" : "makegood_oldest_pending_seconds";
    if (oldestMs !== null && (open || status === "pending")) of(oldest).max([topic], oldestMs / 1_000);
  }
  if (messages !== null) {
    auditLevels(book, messages);
    healingLevels(book, messages);
  }
  for (const { topic, state, paused, held } of breakers ?? []) {
    of("makegood_breaker_state").max([topic], BREAKER[state]);
    of("makegood_topic_paused").max([topic], paused ? 1 : 0);
    if (held !== null) of("makegood_topic_held").set([topic, held], 1);
  }
}

function showStore({ of }: Book, { up, store }: Levels): void {
  if (up !== null) of("makegood_store_up").set([], up ? 1 : 0);
  if (!store) return;
  of("makegood_store_survives").set([], SURVIVES[store.survives]);
  if (store.certificateEndsMs != null) of(STORE_CERTIFICATE).set([], store.certificateEndsMs / 1_000);
  if (store.checkedAgeMs !== null) of("makegood_store_checked_age_seconds").set([], store.checkedAgeMs / 1_000);
  of("makegood_ladder_primary_up").set([], store.ladder.primaryUp ? 1 : 0);
  of("makegood_ladder_survives").set([], SURVIVES[store.ladder.survives]);
  of("makegood_ladder_journal_refuses").set([], store.ladder.journalRefuses ? 1 : 0);
  for (const { place, count, quarantined, ageMs } of store.below) {
    of("makegood_held_below").set([place, "waiting"], count);
    of("makegood_held_below").set([place, "quarantined"], quarantined);
    if (ageMs !== null) of("makegood_held_below_oldest_seconds").set([place], ageMs / 1_000);
  }
  for (const { what, severity } of store.findings) of("makegood_findings").inc([what, severity]);
}
