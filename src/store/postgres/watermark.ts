/**
 * Where the live rows of a lane begin. While an old transaction is open, vacuum cannot remove the index entries of claimed
 * rows, and a claim that starts at the beginning walks over all of them. A row whose transaction commits late may lie before
 * the mark, so a mark lives half a second at most and ends with the first short batch.
 */
import type { Row } from "./connection.ts";

export interface Watermark {
  readonly due: string;
  readonly id: string;
}

export interface Watermarks {
  of(lane: number, now: Date | undefined): Watermark;
  /**
   * Lanes whose last claim brought all that it asked for, by their numbers: they are likely to hold more. Only those of which enough was claimed
   * that walking over it would be felt.
   */
  all(): readonly { readonly lane: number; readonly due: string }[];
  /** The last claim of this lane found next to nothing: so will the next one, most likely. */
  ranDry(lane: number): boolean;
  /** `rows` as the claim returns them: a first one that says up to where each lane was read, then id, lane, … of each message. */
  advance(asked: readonly { id: number; limit: number }[], rows: readonly Row[]): void;
}

const START: Watermark = { due: "-infinity", id: "00000000-0000-0000-0000-000000000000" };
const AGE_MS_MAX = 500;
const WORTH = 200;
const DRY = 4;
/** Beyond this many the old ones are cleared away. */
const MARKS_MANY = 2_000;
const DRY_MANY = 10_000;

export function createWatermarks(monotonicMs: () => number): Watermarks {
  const marks = new Map<number, Watermark & { since: number; passed: number }>();
  const dry = new Set<number>();
  return {
    ranDry: (lane) => dry.has(lane),
    of(lane, now) {
      const mark = marks.get(lane);
      if (now !== undefined || !mark) return START;
      if (monotonicMs() - mark.since <= AGE_MS_MAX) return mark;
      marks.delete(lane);
      return START;
    },
    all() {
      const now = monotonicMs();
      return [...marks]
        .filter(([, { since, passed }]) => passed >= WORTH && now - since <= AGE_MS_MAX)
        .map(([lane, { due }]) => ({ lane, due }))
        .sort((a, b) => a.lane - b.lane);
    },
    advance(asked, rows) {
      const came = new Map<number, { id: string; count: number }>();
      for (const row of rows.slice(1)) {
        const lane = Number(row[1]);
        const last = came.get(lane);
        if (!last) came.set(lane, { id: row[0] as string, count: 1 });
        else {
          last.id = row[0] as string;
          last.count++;
        }
      }
      const due = new Map(rows[0]?.[6]?.split(",").map((mark) => mark.split(":") as [string, string]));
      for (const { id: lane, limit } of asked) {
        const last = came.get(lane);
        const read = due.get(String(lane));
        if ((last?.count ?? 0) < Math.min(limit, DRY)) dry.add(lane);
        else dry.delete(lane);
        if (!last || !read || last.count < limit) marks.delete(lane);
        else {
          // The age counts from the first claim since the lane was last read from its beginning.
          const { since, passed } = marks.get(lane) ?? { since: monotonicMs(), passed: 0 };
          marks.set(lane, { due: timestamp(read), id: last.id, since, passed: passed + last.count });
        }
      }
      if (dry.size > DRY_MANY) dry.clear();
      if (marks.size <= MARKS_MANY) return;
      for (const [lane, { since }] of marks) if (monotonicMs() - since > AGE_MS_MAX) marks.delete(lane);
    },
  };
}

/** Seconds with microseconds, as text, to a timestamp literal: a JavaScript Date would drop the microseconds. */
function timestamp(epoch: string): string {
  const [seconds, fraction = ""] = epoch.split(".");
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${fraction.padEnd(6, "0")}Z`;
}
