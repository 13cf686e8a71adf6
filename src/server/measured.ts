/** What is read of the store for numbers: counts, topics and who serves them, and what the metrics make of it. */
import { servedNow } from "../client/standing.ts";
import type { Makegood } from "../create.ts";
import { holdOf } from "../message/worker-note.ts";
import { type Answer, createLastAnswer } from "../observe/last-answer.ts";
import { isTrusted } from "../observe/level-sources.ts";
import { createMetrics, type Levels as Measured } from "../observe/metrics.ts";
import { settlementLevels } from "../presets/settlement/levels.ts";
import type { Store } from "../store/store.ts";
import type { Token } from "./auth.ts";
import { VERSION } from "./version.ts";

/** Pending, processing and dead: the delivered are not read from the store, that would be all of them. */
export async function levelsOf(store: Pick<Store, "counts" | "topics">) {
  const [counts, topics, served] = await Promise.all([store.counts(), store.topics.list(), servedNow(store)]);
  return { counts, topics, served };
}

export type Levels = Awaited<ReturnType<typeof levelsOf>>;

/** Counting costs the store more than being asked whether it is there. */
const KEPT_MS = 5_000;
/** A scrape waits this long for what it shows, and then shows what is known. */
const WAIT_MS = 150;

export type Measuring = ReturnType<typeof startMeasuring>;

/** Counts, topics and metrics of a Makegood, until it is closed. */
export function startMeasuring(mg: Makegood, tokens: readonly Token[]) {
  const ending = tokens.flatMap(({ name, expiresMs }) => (expiresMs === null ? [] : { name, expiresMs }));
  const { store, clock, events } = mg;
  const levels = createLastAnswer(clock, KEPT_MS, () => levelsOf(store), true);
  const unmeasured = mg.levels.add({ name: "settlement", read: async () => settlementLevels(mg, await levels.read(WAIT_MS)) });
  const measured = async () => ({ ...(await measuredOf(mg, await levels.read(WAIT_MS))), tokens: ending });
  const metrics = createMetrics({ events, version: VERSION, levels: measured, clock });
  return {
    metrics,
    /** At most a few seconds old; the last known ones when the store does not answer within `waitMs`. */
    levels: levels.read,
    close(): void {
      unmeasured();
      metrics.close();
    },
  };
}

async function measuredOf(mg: Makegood, answer: Answer<Levels>): Promise<Measured> {
  // Counts that nobody vouches for any more are not known: absent, never 0.
  const value = isTrusted(answer) ? answer.value : undefined;
  const { levels: given, sources } = await mg.levels.read(WAIT_MS);
  const { error, ageMs: checkedAgeMs, tookMs } = mg.watch.state();
  const asked = tookMs !== null;
  const nowMs = mg.clock.wallMs();
  const breakers = value?.topics.map((topic) => {
    const { name, breaker, paused } = topic;
    return { topic: name, state: breaker.state, paused, held: holdOf(topic, value.served)?.code ?? null };
  });
  const { holdings, unheard, primary, durable, journalRefuses } = mg.ladder.status();
  const below = holdings
    .filter(({ place }) => !unheard.includes(place))
    .map(({ place, count, quarantined, oldestAtMs }) => ({
      ...{ place, count, quarantined },
      ageMs: oldestAtMs === null ? null : Math.max(0, nowMs - oldestAtMs),
    }));
  const ladder = { primaryUp: primary === "up", survives: durable, journalRefuses };
  const { survives, certificateEndsMs } = mg.store.traits;
  return {
    messages: value?.counts ?? null,
    breakers: breakers ?? null,
    ageMs: answer.ageMs,
    certificates: value?.topics.flatMap(({ name, sink }) => {
      const expiresMs = sink.url === undefined ? null : mg.certificateEnds(sink.url);
      return expiresMs === null ? [] : { name, expiresMs };
    }),
    up: asked || error !== null || !mg.opened() ? error === null && mg.opened() : null,
    store: { survives, certificateEndsMs, checkedAgeMs: asked ? checkedAgeMs : null, ladder, below, findings: mg.findings() },
    given,
    sources,
  };
}
