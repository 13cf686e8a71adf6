/**
 * What a server's metrics read: counts by topic, breakers, the store and what lies below it.
 */
import { holdOf } from "../message/worker-note.ts";
import { createMetrics, type Metrics } from "../observe/metrics.ts";
import type { Health } from "./health.ts";
import type { Kernel } from "./kernel.ts";

/** A scrape waits this long for fresh counts and then shows the last ones. */
const LEVELS_WAIT_MS = 150;

export function serverMetrics(kernel: Kernel, health: Health): Metrics {
  return createMetrics({
    events: kernel.mg.events,
    version: kernel.version,
    levels: async () => {
      const { value, ageMs } = await health.levels(LEVELS_WAIT_MS);
      const state = kernel.mg.watch.state();
      const breakers = value?.topics.map((topic) => ({
        topic: topic.name,
        state: topic.breaker.state,
        paused: topic.paused,
        held: holdOf(topic, value.served)?.code ?? null,
      }));
      const { survives } = kernel.mg.store.traits;
      const store = { survives, checkedAgeMs: state.ageMs, below: belowOf(kernel), findings: kernel.mg.findings() };
      return { messages: value?.counts ?? [], breakers: breakers ?? [], ageMs, up: state.error === null, store };
    },
  });
}

/** What lies below the primary store, as metrics show it. */
function belowOf({ mg, clock }: Kernel) {
  const nowMs = clock.wallMs();
  return mg.ladder.status().holdings.map(({ place, count, quarantined, oldestAtMs }) => {
    return { place, count, quarantined, ageMs: oldestAtMs === null ? 0 : Math.max(0, nowMs - oldestAtMs) };
  });
}
