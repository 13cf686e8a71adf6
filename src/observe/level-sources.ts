/**
 * Gauges that rooms give: each source says what it knows when a scrape asks, kept for a while, and one that hangs holds up no other. A source
 * that did not answer lately gives nothing: what is not known has no number.
 */
import type { Clock } from "../platform/clock.ts";
import { createLastAnswer, type LastAnswer } from "./last-answer.ts";
import type { MetricName } from "./table.ts";

export interface Level {
  readonly name: MetricName;
  readonly value: number;
  /** In the order of the table. */
  readonly labels?: readonly string[] | undefined;
}

export interface LevelSource {
  /** One word: the label of `makegood_source_up`. */
  readonly name: string;
  /** Only what is declared in the table with `source`. */
  read(): Promise<readonly Level[]>;
}

export interface ReadLevels {
  readonly levels: readonly Level[];
  readonly sources: readonly { readonly name: string; readonly up: boolean }[];
}

export interface LevelSources {
  /** Returns how to take it away again. */
  add(source: LevelSource): () => void;
  /** Never rejects, and never takes much longer than `waitMs`. */
  read(waitMs: number): Promise<ReadLevels>;
}

const KEPT_MS = 10_000;
/** A number that was not read again for so long is not shown any more; where the last question failed, sooner. */
export const TRUSTED_MS = 90_000;
export const DOUBTED_MS = 15_000;

export const isTrusted = ({ ageMs, error }: { readonly ageMs: number | null; readonly error: string | null }): boolean =>
  ageMs !== null && ageMs <= (error === null ? TRUSTED_MS : DOUBTED_MS);

export function createLevelSources(clock: Clock): LevelSources {
  const all = new Map<LevelSource, LastAnswer<readonly Level[]>>();
  return {
    add(source) {
      // Asked inside a promise: one that throws at once is one that did not answer.
      all.set(
        source,
        createLastAnswer(clock, KEPT_MS, async () => source.read(), true),
      );
      return () => void all.delete(source);
    },
    async read(waitMs) {
      const answers = await Promise.all(
        [...all].map(async ([{ name }, last]) => {
          const answer = await last.read(waitMs);
          const up = isTrusted(answer);
          return { name, up, levels: up ? (answer.value ?? []) : [] };
        }),
      );
      return {
        levels: answers.flatMap(({ levels }) => levels),
        sources: answers.map(({ name, up }) => ({ name, up })),
      };
    },
  };
}
