/**
 * What lies below the primary store, as one list: health, metrics and what is called durable are computed from it, and are never better than the
 * worst place where something lies.
 */
import type { Holding, LadderStatus, Survives } from "../fallback.ts";
import type { Journal } from "../journal.ts";
import type { StatusCount, Store } from "../store.ts";
import type { MemoryRung } from "./memory-rung.ts";

/** What the secondary store has of ours, as of the last time it was asked, and what was put there since. */
export interface HeldAside {
  count: number;
  quarantined: number;
  oldestAtMs: number | null;
}

export interface Places {
  readonly primary: Store;
  readonly secondary?: Store | undefined;
  readonly journal?: Journal | undefined;
  readonly memory: MemoryRung;
  readonly aside: HeldAside;
  /** How large the journal was when it refused what it was given last; null: it took that. */
  readonly refusedAtBytes: number | null;
}

export function asideOf(counts: readonly StatusCount[], topics: readonly string[], nowMs: number): HeldAside {
  const held: HeldAside = { count: 0, quarantined: 0, oldestAtMs: null };
  for (const { topic, status, resolution, count, oldestMs } of counts) {
    if (!topics.includes(topic)) continue;
    if (status === "dead" && resolution === "open") held.quarantined += count;
    if (status !== "pending" && status !== "processing") continue;
    held.count += count;
    if (oldestMs !== null) held.oldestAtMs = Math.min(held.oldestAtMs ?? nowMs, nowMs - oldestMs);
  }
  return held;
}

export function statusOf(primaryIs: "up" | "down", places: Places): LadderStatus {
  const { primary, secondary, journal, memory, aside, refusedAtBytes } = places;
  const holdings: Holding[] = [];
  if (secondary) holdings.push({ place: "secondary", ...aside, survives: secondary.traits.survives });
  const stats = journal?.stats();
  if (stats) {
    const { waiting: count, quarantined, oldestAtMs } = stats;
    holdings.push({ place: "journal", count, quarantined, oldestAtMs, survives: "power-loss" });
  }
  holdings.push({ place: "memory", count: memory.size, quarantined: 0, oldestAtMs: memory.oldestAtMs, survives: "nothing" });
  const journalRefuses = stats !== undefined && stats.bytes >= Math.min(stats.bytesMax, refusedAtBytes ?? stats.bytesMax);
  const below = (holdings.find(({ place }) => place !== "journal" || !journalRefuses) as Holding).survives;
  const next = primaryIs === "up" ? primary.traits.survives : below;
  const held = holdings.filter(({ count, quarantined }) => count + quarantined > 0);
  const ages = held.flatMap(({ oldestAtMs }) => oldestAtMs ?? []);
  return {
    primary: primaryIs,
    survives: next,
    survivesBelow: below,
    journalRefuses,
    durable: worst([next, ...held.map(({ survives }) => survives)]),
    holdings,
    waiting: { journal: stats?.waiting ?? 0, memory: memory.size },
    quarantined: holdings.reduce((sum, { quarantined }) => sum + quarantined, 0),
    oldestAtMs: ages.length > 0 ? Math.min(...ages) : null,
  };
}

const ORDER: readonly Survives[] = ["nothing", "process-crash", "power-loss"];

const worst = (all: readonly Survives[]): Survives => ORDER.find((survives) => all.includes(survives)) as Survives;
