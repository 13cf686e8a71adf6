/** Whether this process lives, can accept, and how everything stands; none of it waits for a store that hangs. */
import type { BesideStatus } from "../create/recovery-beside.ts";
import type { TopicRecord } from "../message/topic.ts";
import type { Hold } from "../message/worker-note.ts";
import type { Finding } from "../observe/finding.ts";
import { type Answer, createLastAnswer } from "../observe/last-answer.ts";
import { billingOfCounts, lookAtStore } from "../presets/settlement/health.ts";
import { TOPIC as BILLING } from "../presets/settlement/topic.ts";
import type { LadderStatus } from "../store/fallback.ts";
import type { Token } from "./auth.ts";
import { inWireNames } from "./json/wire.ts";
import type { Kernel } from "./kernel.ts";
import { type Levels, startMeasuring } from "./measured.ts";
import { VERSION } from "./version.ts";

const READY_WAIT_MS = 2_000;
const READY_KEPT_MS = 500;
const SUMMARY_WAIT_MS = 40;
const TOPICS_MAX = 1_000;
const BILLING_KEPT_MS = 15_000;
const BILLING_WAIT_MS = 20;
const NOT_LOOKED = { state: "unknown" } as const;

export type Health = ReturnType<typeof createHealth>;

export function createHealth(kernel: Kernel, tokens: readonly Token[] = []) {
  const { clock } = kernel;
  const { store, watch, ladder, events } = kernel.mg;
  const measuring = startMeasuring(kernel.mg, tokens);
  const { metrics, levels } = measuring;
  const billing = createLastAnswer(clock, BILLING_KEPT_MS, () => lookAtStore(store));
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
      measuring.close();
    },
    /** Counts and topics, at most a few seconds old; the last known ones when the store does not answer within `waitMs`. */
    levels,
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
      const known = await levels(SUMMARY_WAIT_MS);
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
    ...manyDead(value, kernel.deadLettersMax),
    ...(kernel.mg.ladder.status().primary === "down" ? [degraded("ladder_in_use", LADDER_IN_USE)] : []),
    ...notServed.map(({ topic, code, reason }) => degraded("not_served", `not served (${code}: ${reason})`, topic)),
    ...ofProcess.flatMap(([is, what, reason]) => (is ? [degraded(what, reason)] : [])),
  ];
}

const LADDER_IN_USE = "the primary store took nothing when it was last used: what deliver() takes goes below it";
const NAMED_MAX = 3;

/** Over all topics, and where most of them are: a flood is in one of them, neglect in all. */
function manyDead(levels: Levels | null | undefined, most: number): Finding[] {
  const dead = new Map<string, number>();
  for (const { topic, status, count } of levels?.counts ?? [])
    if (status === "dead") dead.set(topic, (dead.get(topic) ?? 0) + count);
  const total = [...dead.values()].reduce((sum, count) => sum + count, 0);
  if (total <= most) return [];
  const worst = [...dead].sort(([, one], [, other]) => other - one).slice(0, NAMED_MAX);
  const named = worst.map(([topic, count]) => `${topic} ${count}`).join(", ");
  return [degraded("many_dead_letters", `${total} open dead letters, more than ${most}; most in ${named}`)];
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
