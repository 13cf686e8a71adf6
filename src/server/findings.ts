/**
 * The list of what is not as it should be, as the API shows it: what every part of the kernel found, what the topics say, and what
 * this process is doing. The status is the worst of them.
 */
import type { TopicRecord } from "../message/topic.ts";
import type { Hold } from "../message/worker-note.ts";
import type { Finding } from "../observe/finding.ts";
import type { Answer } from "../observe/last-answer.ts";
import type { Levels } from "./health.ts";
import type { Kernel } from "./kernel.ts";

/** I10: so many are shown; the status counts all. */
export const FINDINGS_MAX = 200;

function topicFindings({ name, breaker, disabledReason }: TopicRecord): Finding[] {
  const held = breaker.tenants.map(({ tenantId, reason }) => `only for tenant ${tenantId}: ${reason}`);
  const open = breaker.state === "closed" ? held : [breaker.reason ?? "its receiver failed", ...held];
  return [
    ...open.map((reason) => degraded("breaker_open", reason, name)),
    ...(disabledReason === null ? [] : [degraded("sink_disabled", disabledReason, name)]),
  ];
}

type NotServed = Hold & { readonly topic: string };

/** Topics that nobody can deliver although something of them waits. */
export function unservedTopics(levels: Levels | null | undefined): NotServed[] {
  if (!levels) return [];
  const waiting = new Set(levels.counts.filter(({ status }) => status === "pending").map(({ topic }) => topic));
  return levels.topics.flatMap((topic) => {
    const why = waiting.has(topic.name) && !topic.paused ? levels.served.why(topic) : null;
    return why ? [{ topic: topic.name, ...why }] : [];
  });
}

function processFindings(kernel: Kernel, known: Answer<Levels>): Finding[] {
  const dispatcher = kernel.worker?.status();
  const found = [
    [known.error !== null, "counts_old", "the counts are old"],
    [dispatcher?.state === "stopped", "dispatcher_stopped", "the dispatcher has stopped"],
    [dispatcher !== undefined && dispatcher.storeFailures > 0, "dispatcher_cut_off", "the dispatcher cannot reach the store"],
    [kernel.draining(), "draining", "shutting down"],
  ] as const;
  return found.flatMap(([is, what, reason]) => (is ? [degraded(what, reason)] : []));
}

export function findingsOf(kernel: Kernel, known: Answer<Levels>, notServed: readonly NotServed[]): Finding[] {
  return [
    ...kernel.mg.findings(),
    ...(known.value?.topics ?? []).flatMap(topicFindings),
    ...notServed.map(({ topic, code, reason }) => degraded("not_served", `not served (${code}: ${reason})`, topic)),
    ...processFindings(kernel, known),
  ];
}

function degraded(what: string, reason: string, topic: string | null = null): Finding {
  return { what, topic, reason, sinceMs: null, severity: "degraded" };
}

export function statusOf(findings: readonly Finding[]): "healthy" | "degraded" | "unhealthy" {
  if (findings.some(({ severity }) => severity === "unhealthy")) return "unhealthy";
  return findings.some(({ severity }) => severity === "degraded") ? "degraded" : "healthy";
}

const OF_TOPICS = ["breaker_open", "sink_disabled"];

/** As sentences, the worst first; topics with the same trouble share one. */
export function reasonsOf(findings: readonly Finding[]): string[] {
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

export const isoOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

export const findingJson = ({ sinceMs, ...finding }: Finding) => ({ ...finding, since: isoOf(sinceMs) });
