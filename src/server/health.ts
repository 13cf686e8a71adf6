/**
 * Whether this process lives, can accept, and how everything stands. None of it waits for a store that hangs: /health
 * answers within a tenth of a second with what was last known and says how old that is.
 */
import { MakegoodError } from "../message/errors.ts";
import type { TopicRecord } from "../message/topic.ts";
import { billingOfCounts } from "../presets/settlement/health.ts";
import { TOPIC as BILLING } from "../presets/settlement/topic.ts";
import type { StatusCount } from "../store/store.ts";
import { countJson } from "./contract.ts";
import type { Kernel } from "./kernel.ts";
import { type Answer, createLastAnswer } from "./last-answer.ts";

export interface Levels {
  /** Pending, processing and dead: the delivered are not read from the store, that would be all of them. */
  readonly counts: readonly StatusCount[];
  readonly topics: readonly TopicRecord[];
}

export interface ReadyCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string | null;
}

export interface HealthJson {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly reasons: readonly string[];
  readonly [member: string]: unknown;
}

export interface Health {
  ready(): Promise<ReadyCheck[]>;
  summary(): Promise<HealthJson>;
  /** Counts and topics, at most a few seconds old; the last known ones when the store does not answer within `waitMs`. */
  levels(waitMs: number): Promise<Answer<Levels>>;
  /** Topic → how many this process has delivered since it started. */
  readonly delivered: ReadonlyMap<string, number>;
}

const READY_WAIT_MS = 2_000;
const READY_KEPT_MS = 500;
const SUMMARY_WAIT_MS = 40;
/** Counting costs the store more than being asked whether it is there. */
const LEVELS_KEPT_MS = 5_000;
const TOPICS_MAX = 1_000;

export function createHealth(kernel: Kernel): Health {
  const { clock } = kernel;
  const { store } = kernel.mg;
  const freshLevels = async (): Promise<Levels> => {
    const [counts, topics] = await Promise.all([store.counts(), store.topics.list()]);
    return { counts, topics };
  };
  const check = createLastAnswer(clock, READY_KEPT_MS, async () => {
    await store.check();
    if (!kernel.mg.opened()) throw new MakegoodError("store_unavailable", "it answers again and is being opened");
  });
  const levels = createLastAnswer(clock, LEVELS_KEPT_MS, freshLevels);
  const delivered = countDelivered(kernel);
  return {
    delivered,
    levels: (waitMs) => levels.read(waitMs),
    async ready() {
      const { error } = await check.read(READY_WAIT_MS);
      const draining = kernel.draining();
      return [
        { name: "store", ok: error === null, detail: error && `${store.traits.name} ${error}` },
        { name: "accepting", ok: !draining, detail: draining ? "shutting down" : null },
      ];
    },
    async summary() {
      const [checked, known] = await Promise.all([check.read(SUMMARY_WAIT_MS), levels.read(SUMMARY_WAIT_MS)]);
      return summarize(kernel, checked, known);
    },
  };
}

/** Bounded like every label: topics beyond the first thousand share a line. */
function countDelivered(kernel: Kernel): Map<string, number> {
  const delivered = new Map<string, number>();
  kernel.mg.events.on((event) => {
    if (event.type !== "attempt" || event.status !== "delivered") return;
    const topic = delivered.has(event.topic) || delivered.size < TOPICS_MAX ? event.topic : "other";
    delivered.set(topic, (delivered.get(topic) ?? 0) + 1);
  });
  return delivered;
}

function summarize(kernel: Kernel, checked: Answer<void>, known: Answer<Levels>): HealthJson {
  const { name, survives } = kernel.mg.store.traits;
  const topics = known.value?.topics ?? [];
  const counts = known.value?.counts ?? [];
  const names = (which: (topic: TopicRecord) => boolean): string[] => topics.filter(which).map((topic) => topic.name);
  const open = names((topic) => topic.breaker.state !== "closed");
  const disabled = names((topic) => topic.disabledReason !== null);
  const paused = names((topic) => topic.paused);
  const dispatcher = kernel.dispatcher();

  const down = checked.error === null ? [] : [`the store does not answer: ${checked.error}`];
  const worse: string[] = [];
  if (open.length > 0) worse.push(`breaker open: ${open.join(", ")}`);
  if (disabled.length > 0) worse.push(`sink disabled: ${disabled.join(", ")}`);
  if (known.error !== null) worse.push("the counts are old");
  if (dispatcher?.state === "stopped") worse.push("the dispatcher has stopped");
  if (dispatcher && dispatcher.storeFailures > 0) worse.push("the dispatcher cannot reach the store");
  if (kernel.draining()) worse.push("shutting down");
  const status = down.length > 0 ? "unhealthy" : worse.length > 0 ? "degraded" : "healthy";
  return {
    status,
    reasons: [...down, ...worse],
    version: kernel.version,
    store: { name, survives, up: checked.error === null, error: checked.error, answered_in_ms: checked.tookMs },
    dispatcher: dispatcher && {
      state: dispatcher.state,
      running: dispatcher.running,
      waiting: dispatcher.waiting,
      unsettled: dispatcher.unsettled,
      store_failures: dispatcher.storeFailures,
    },
    topics: { count: topics.length, paused, breaker_open: open, sink_disabled: disabled },
    counts: counts.map(countJson),
    counts_age_ms: known.ageMs,
    // CON-5: only where settlement is kept in this store.
    ...(topics.some((topic) => topic.name === BILLING)
      ? { billing: billingOfCounts(counts, kernel.mg.store.traits, checked.error === null) }
      : {}),
  };
}
