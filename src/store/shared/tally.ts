/**
 * How many messages of some topics stand somewhere and how old the oldest of them is: what everybody needs who says how things are.
 */
import type { Status } from "../../message/message.ts";
import { topicMatches } from "../../message/validate.ts";
import type { LadderStatus } from "../fallback.ts";
import type { StatusCount } from "../store.ts";

export interface Tally {
  readonly count: number;
  /** Null: there is none, or its store does not say. */
  readonly oldestMs: number | null;
}

/** Accepted and not at its end. */
export const UNSETTLED: readonly Status[] = ["pending", "processing"];

/** `topics`: a name or a pattern. Of the dead letters only those that nobody has closed. */
export function tallyOf(counts: readonly StatusCount[], topics: string, statuses: readonly Status[]): Tally {
  const which = ({ topic, status, resolution }: StatusCount): boolean =>
    statuses.includes(status) && (status !== "dead" || resolution === "open") && topicMatches(topics, topic);
  return counts.filter(which).reduce<Tally>(both, { count: 0, oldestMs: null });
}

/** The same with what lies below the store, in the journal and in memory of this process. */
export function withBelow(tally: Tally, { waiting, oldestAtMs }: LadderStatus, wallMs: number): Tally {
  const count = waiting.journal + waiting.memory;
  return both(tally, { count, oldestMs: oldestAtMs === null ? null : Math.max(0, wallMs - oldestAtMs) });
}

function both(a: Tally, b: Tally): Tally {
  const ages = [a.oldestMs, b.oldestMs].filter((age) => age !== null);
  return { count: a.count + b.count, oldestMs: ages.length === 0 ? null : Math.max(...ages) };
}
