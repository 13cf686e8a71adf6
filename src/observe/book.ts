/** The series of the table, made once and found by name; and the form of what counts events into them. */
import type { MakegoodEvent } from "./events.ts";
import { createSeriesBook, type Durations, type Series } from "./series.ts";
import { METRICS, type Metric, type MetricName } from "./table.ts";

export interface MessageLevel {
  readonly topic: string;
  readonly status: string;
  readonly resolution: string | null;
  readonly count: number;
  readonly oldestMs: number | null;
}

/** The series of the table, by name. */
export interface Book {
  of(name: MetricName): Series;
  durations(name: MetricName): Durations;
}

/** What is counted at each kind of event. */
export type Counted = { [T in MakegoodEvent["type"]]?: (event: Extract<MakegoodEvent, { type: T }>) => void };

export function createBook() {
  const made = createSeriesBook();
  const plain = new Map<string, Series>();
  const timed = new Map<string, Durations>();
  const levelSeries: Series[] = [];
  for (const [name, metric] of Object.entries<Metric>(METRICS)) {
    const { type, help, buckets = [], from0 = [] } = metric;
    if (type === "histogram") timed.set(name, made.histogram(name, help, buckets, metric));
    else {
      const series = made[type](name, help, metric);
      plain.set(name, series);
      for (const labels of from0) series.inc(labels, 0);
      if (type === "gauge") levelSeries.push(series);
    }
  }
  const book: Book = {
    of: (name) => plain.get(name) as Series,
    durations: (name) => timed.get(name) as Durations,
  };
  return { book, levelSeries, text: made.text };
}
