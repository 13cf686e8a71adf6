/** Whether this process lives, can accept, and how everything stands; none of it waits for a store that hangs. */
import { servedNow } from "../client/standing.ts";
import type { BesideStatus } from "../create/recovery-beside.ts";
import type { TopicRecord } from "../message/topic.ts";
import { type Hold, holdOf } from "../message/worker-note.ts";
import type { Finding } from "../observe/finding.ts";
import { type Answer, createLastAnswer } from "../observe/last-answer.ts";
import { createMetrics, type Levels as Measured } from "../observe/metrics.ts";
import { billingOfCounts, lookAtStore } from "../presets/settlement/health.ts";
import { TOPIC as BILLING } from "../presets/settlement/topic.ts";
import type { LadderStatus } from "../store/fallback.ts";
import type { Store } from "../store/store.ts";
import { inWireNames } from "./json/wire.ts";
import type { Kernel } from "./kernel.ts";
import { VERSION } from "./version.ts";

/** Pending, processing and dead: the delivered are not read from the store, that would be all of them. */
export async function levelsOf(store: Pick<Store, "counts" | "topics">) {
  const [counts, topics, served] = await Promise.all([store.counts(), store.topics.list(), servedNow(store)]);
  return { counts, topics, served };
}

export type Levels = Awaited<ReturnType<typeof levelsOf>>;

const READY_WAIT_MS = 2_000;
const READY_KEPT_MS = 500;
const SUMMARY_WAIT_MS = 40;
/** Counting costs the store more than being asked whether it is there. */
const LEVELS_KEPT_MS = 5_000;
/** A scrape waits this long for fresh counts and then shows the last ones. */
const LEVELS_WAIT_MS = 150;
const TOPICS_MAX = 1_000;
const BILLING_KEPT_MS = 15_000;
const BILLING_WAIT_MS = 20;
const NOT_LOOKED = { state: "unknown" } as const;

export type Health = ReturnType<typeof createHealth>;

export function createHealth(kernel: Kernel) {
  const { clock } = kernel;
  const { store, watch, ladder, events } = kernel.mg;
  const levels = createLastAnswer(clock, LEVELS_KEPT_MS, () => levelsOf(store), true);
  const billing = createLastAnswer(clock, BILLING_KEPT_MS, () => lookAtStore(store));
  const measured = async () => measuredOf(kernel, await levels.read(LEVELS_WAIT_MS));
  const metrics = createMetrics({ events, version: VERSION, levels: measured });
  const delivered = new Map<string, number>();
  const deaf = events.on((event) => {
    if (event.type !== "attempt" || event.status !== "delivered") return;
    // Bounded like every label: topics beyond the first thousand share a line.
    const topic = delivered.has(event.topic) || delivered.size < TOPICS_MAX ? event.topic : "other";
    delivered.set(topic, (delivered.get(topic) ?? 0) + 1);
  });
  return {
    metrics,
    delivered: delivered as ReadonlyMap<string, number>,
    close(): void {
      deaf();
      metrics.close();
    },
    /** Counts and topics, at most a few seconds old; the last known ones when the store does not answer within `waitMs`. */
    levels: levels.read,
    async ready() {
      const { error } = await watch.fresh(READY_KEPT_MS, READY_WAIT_MS);
      const draining = kernel.draining();
      const home = kernel.mg.recoveryBeside();
      return [
        { name: "store", ok: error === null, detail: error && `${store.traits.name} ${error}` },
        { name: "accepting", ok: !draining, detail: draining ? "shutting down" : null },
        // Never a reason not to be ready: deliver() has somewhere to put a message as long as the process lives.
        { name: "deliver", ok: true, detail: deliverText(ladder.status(), error === null) },
        // Nor is this: deliveries need no home of recovery.
        ...(home === null ? [] : [{ name: "recovery", ok: true, detail: homeText(home) }]),
      ];
    },
    async summary() {
      const known = await levels.read(SUMMARY_WAIT_MS);
      // CON-5: only where settlement is kept in this store.
      if (!known.value?.topics.some((topic) => topic.name === BILLING)) return summaryOf(kernel, known);
      const looked = (await billing.read(BILLING_WAIT_MS)).value ?? NOT_LOOKED;
      const up = watch.state().error === null;
      return { ...summaryOf(kernel, known), billing: billingOfCounts(known.value.counts, store.traits, up, looked) };
    },
  };
}

const homeText = ({ reachable, error }: BesideStatus): string =>
  reachable ? "its home is reachable" : `its home cannot be used: ${error}`;

const homeJson = (home: BesideStatus | null) => home && { ...home, sinceMs: undefined, since: isoOf(home.sinceMs) };

function deliverText({ survivesBelow, journalRefuses, holdings }: LadderStatus, accepts: boolean): string {
  const text = accepts ? "into the primary store" : `only below the primary store; what is taken now survives ${survivesBelow}`;
  if (!journalRefuses) return text;
  const left = holdings.some(({ place }) => place === "secondary") ? "the secondary store and memory" : "memory";
  return `${text}; below it ${left} only: the journal is full or cannot be written`;
}

function summaryOf(kernel: Kernel, known: Answer<Levels>) {
  const { store, watch, ladder } = kernel.mg;
  const { name, survives } = store.traits;
  const { error, tookMs, checkedAtMs, ageMs } = watch.state();
  const below = ladder.status();
  const { topics = [], counts = [] } = known.value ?? {};
  const notServed = unservedTopics(known.value);
  const findings = findingsOf(kernel, known, notServed);
  const names = (which: (topic: TopicRecord) => boolean): string[] => topics.filter(which).map((topic) => topic.name);
  const up = error === null;
  const checked = { checked_at: isoOf(checkedAtMs), age_ms: ageMs };
  return {
    status: statusOf(findings),
    reasons: reasonsOf(findings),
    findings: findings.slice(0, FINDINGS_MAX).map(({ sinceMs, ...finding }) => ({ ...finding, since: isoOf(sinceMs) })),
    version: VERSION,
    ...checked,
    store: { name, survives, up, error, answered_in_ms: tookMs, ...checked },
    deliver: {
      into: up && below.primary === "up" ? "primary" : "below",
      survives: below.survives,
      durable: below.durable,
      waiting_below: below.waiting,
      holdings: below.holdings.map(({ oldestAtMs, ...held }) => ({ ...held, oldest_at: isoOf(oldestAtMs) })),
      quarantined: below.quarantined,
    },
    recovery_home: homeJson(kernel.mg.recoveryBeside()) ?? undefined,
    dispatcher: inWireNames(kernel.worker?.status() ?? null),
    topics: {
      count: topics.length,
      paused: names((topic) => topic.paused),
      breaker_open: names((topic) => topic.breaker.state !== "closed"),
      sink_disabled: names((topic) => topic.disabledReason !== null),
      not_served: notServed.slice(0, FINDINGS_MAX),
    },
    counts: counts.map((one) => inWireNames(one)),
    counts_age_ms: known.ageMs,
  };
}

function measuredOf({ mg, clock }: Kernel, { value, ageMs }: Answer<Levels>): Measured {
  const { error, ageMs: checkedAgeMs } = mg.watch.state();
  const nowMs = clock.wallMs();
  const breakers = value?.topics.map((topic) => {
    const { name, breaker, paused } = topic;
    return { topic: name, state: breaker.state, paused, held: holdOf(topic, value.served)?.code ?? null };
  });
  const below = mg.ladder.status().holdings.map(({ place, count, quarantined, oldestAtMs }) => {
    return { place, count, quarantined, ageMs: oldestAtMs === null ? 0 : Math.max(0, nowMs - oldestAtMs) };
  });
  const store = { survives: mg.store.traits.survives, checkedAgeMs, below, findings: mg.findings() };
  return { messages: value?.counts ?? [], breakers: breakers ?? [], ageMs, up: error === null, store };
}

/** I10: so many are shown; the status counts all. */
const FINDINGS_MAX = 200;

function topicFindings({ name, breaker, disabledReason }: TopicRecord): Finding[] {
  const held = breaker.tenants.map(({ tenantId, reason }) => `only for tenant ${tenantId}: ${reason}`);
  const open = breaker.state === "closed" ? held : [breaker.reason ?? "its receiver failed", ...held];
  const disabled = disabledReason === null ? [] : [degraded("sink_disabled", disabledReason, name)];
  return [...open.map((reason) => degraded("breaker_open", reason, name)), ...disabled];
}

export function unservedTopics(levels: Levels | null | undefined): (Hold & { readonly topic: string })[] {
  if (!levels) return [];
  const waiting = new Set(levels.counts.filter(({ status }) => status === "pending").map(({ topic }) => topic));
  return levels.topics.flatMap((topic) => {
    const why = waiting.has(topic.name) && !topic.paused ? levels.served.why(topic) : null;
    return why ? [{ topic: topic.name, ...why }] : [];
  });
}

function findingsOf(kernel: Kernel, { value, error }: Answer<Levels>, notServed: ReturnType<typeof unservedTopics>): Finding[] {
  const dispatcher = kernel.worker?.status();
  const ofProcess = [
    [error !== null, "counts_old", "the counts are old"],
    [dispatcher?.state === "stopped", "dispatcher_stopped", "the dispatcher has stopped"],
    [dispatcher !== undefined && dispatcher.storeFailures > 0, "dispatcher_cut_off", "the dispatcher cannot reach the store"],
    [kernel.draining(), "draining", "shutting down"],
  ] as const;
  return [
    ...kernel.mg.findings(),
    ...(value?.topics ?? []).flatMap(topicFindings),
    ...notServed.map(({ topic, code, reason }) => degraded("not_served", `not served (${code}: ${reason})`, topic)),
    ...ofProcess.flatMap(([is, what, reason]) => (is ? [degraded(what, reason)] : [])),
  ];
}

function degraded(what: string, reason: string, topic: string | null = null): Finding {
  return { what, topic, reason, sinceMs: null, severity: "degraded" };
}

const statusOf = (findings: readonly Finding[]) =>
  (["unhealthy", "degraded"] as const).find((worst) => findings.some(({ severity }) => severity === worst)) ?? "healthy";

const OF_TOPICS = ["breaker_open", "sink_disabled"];

function reasonsOf(findings: readonly Finding[]): string[] {
  const down: string[] = [];
  const worse: string[] = [];
  const topics = new Map<string, string[]>();
  for (const { what, topic, reason, severity } of findings) {
    if (severity === "note") continue;
    const shared = what.replace("_", " ");
    if (topic !== null && OF_TOPICS.includes(what)) topics.set(shared, [...(topics.get(shared) ?? []), topic]);
    else (severity === "unhealthy" ? down : worse).push(topic === null ? reason : `${topic}: ${reason}`);
  }
  return [...down, ...[...topics].map(([shared, names]) => `${shared}: ${names.join(", ")}`), ...worse].slice(0, FINDINGS_MAX);
}

const isoOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
