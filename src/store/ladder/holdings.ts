/**
 * What lies below the primary store, as one list: health, metrics and what is called durable are computed from it, and are never better than the
 * worst place where something lies.
 */
import type { Holding, LadderStatus, Survives } from "../fallback.ts";
import type { Journal } from "../journal.ts";
import type { Store } from "../store.ts";
import type { Below } from "./below.ts";
import type { SecondaryContents } from "./secondary-contents.ts";

export interface Places {
  readonly primary: Store;
  readonly secondary?: Store | undefined;
  readonly journal?: Journal | undefined;
  readonly below: Pick<Below, "inMemory" | "oldestAtMs">;
  readonly inSecondary: SecondaryContents;
  /** How large the journal was when it refused what it was given last; null: it took that. */
  readonly refusedAtBytes: number | null;
}

export function statusOf(primaryIs: "up" | "down", places: Places): LadderStatus {
  const { primary, secondary, journal, below, inSecondary, refusedAtBytes } = places;
  const holdings: Holding[] = [];
  if (secondary) {
    const { count, quarantined, oldestAtMs } = inSecondary;
    holdings.push({ place: "secondary", count, quarantined, oldestAtMs, survives: secondary.traits.survives });
  }
  const stats = journal?.stats();
  if (stats) {
    const { waiting: count, quarantined, oldestAtMs } = stats;
    holdings.push({ place: "journal", count, quarantined, oldestAtMs, survives: "power-loss" });
  }
  holdings.push({ place: "memory", count: below.inMemory, quarantined: 0, oldestAtMs: below.oldestAtMs, survives: "nothing" });
  const journalRefuses = stats !== undefined && stats.bytes >= Math.min(stats.bytesMax, refusedAtBytes ?? stats.bytesMax);
  const lower = (holdings.find(({ place }) => place !== "journal" || !journalRefuses) as Holding).survives;
  const next = primaryIs === "up" ? primary.traits.survives : lower;
  // What a process before this one left in the secondary store is not known until that was asked.
  const unheard = ({ place }: Holding): boolean => place === "secondary" && inSecondary.heard === "never";
  const held = holdings.filter((one) => one.count + one.quarantined > 0 || unheard(one));
  const ages = held.flatMap(({ oldestAtMs }) => oldestAtMs ?? []);
  return {
    primary: primaryIs,
    survives: next,
    survivesBelow: lower,
    journalRefuses,
    durable: worst([next, ...held.map(({ survives }) => survives)]),
    holdings,
    unheard: secondary && inSecondary.heard !== "yes" ? ["secondary"] : [],
    waiting: { journal: stats?.waiting ?? 0, memory: below.inMemory },
    quarantined: holdings.reduce((sum, { quarantined }) => sum + quarantined, 0),
    oldestAtMs: ages.length > 0 ? Math.min(...ages) : null,
  };
}

const ORDER: readonly Survives[] = ["nothing", "process-crash", "power-loss"];

const worst = (all: readonly Survives[]): Survives => ORDER.find((survives) => all.includes(survives)) as Survives;
