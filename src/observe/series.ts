/**
 * Numbers with labels, in the text format of Prometheus. The label text of each is made once, when it first appears, so that a scrape of a
 * thousand topics is a walk over finished lines. What is not known is not there: a gauge has no line until it is set. A label has so many
 * values and no more; further ones share `other` (DX-8).
 */

/** Label values in the order of the names. */
export type Labels = readonly string[];

export interface Series {
  inc(labels?: Labels, by?: number): void;
  set(labels: Labels, value: number): void;
  /** The larger one: where several share a label, the worst of them is shown. */
  max(labels: Labels, value: number): void;
  reset(): void;
}

export interface Durations {
  observe(labels: Labels, value: number): void;
}

export interface SeriesOptions {
  readonly labels?: Labels | undefined;
  /** The same numbers once more under another name, and some label values by other names. */
  readonly alias?: string | undefined;
  readonly aliasValues?: Readonly<Record<string, string>> | undefined;
}

export interface SeriesBook {
  counter(name: string, help: string, options?: SeriesOptions): Series;
  gauge(name: string, help: string, options?: SeriesOptions): Series;
  histogram(name: string, help: string, buckets: readonly number[], options?: SeriesOptions): Durations;
  text(): string;
}

export const TOPICS_MAX = 1_000;
/** Of any label but the topic: they come from lists, and from what rooms and functions say. */
export const VALUES_MAX = 100;
export const OTHER = "other";

const escaped = (value: string): string => value.replace(/[\\\n"]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`));
const pairs = (names: Labels, values: Labels): string[] => names.map((name, i) => `${name}="${escaped(values[i] ?? "")}"`);
const lineOf = (name: string, labels: readonly string[]): string =>
  labels.length > 0 ? `${name}{${labels.join(",")}} ` : `${name} `;
const head = (name: string, help: string, type: string): string => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
const keyOf = (labels: Labels): string => (labels.length === 1 ? (labels[0] as string) : labels.join("\u0000"));

/** The first `max` names are labels of their own; all further names share one. */
function cappedLabels(max: number): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (known.has(name)) return name;
    if (known.size >= max) return OTHER;
    known.add(name);
    return name;
  };
}

interface Printed {
  /** Of one name; the values are those of all names. */
  text(name: string, values: Readonly<Record<string, string>>): string;
}

/** One entry for each combination of labels, made by `fresh` when it first comes. */
function entries<T>(caps: readonly ((value: string) => string)[], fresh: () => T) {
  const found = new Map<string, T>();
  const all: { readonly labels: Labels; readonly entry: T }[] = [];
  return {
    all,
    at(given: Labels): T {
      const known = found.get(keyOf(given));
      if (known !== undefined) return known;
      const labels = caps.map((cap, i) => cap(given[i] ?? ""));
      const key = keyOf(labels);
      let entry = found.get(key);
      if (entry === undefined) {
        entry = fresh();
        found.set(key, entry);
        all.push({ labels, entry });
      }
      return entry;
    },
  };
}

/** The lines under one name, each made once. */
function linesOf(names: Labels) {
  const kept = new Map<string, string[]>();
  return (name: string, values: Readonly<Record<string, string>>) => {
    const lines = kept.get(name) ?? [];
    kept.set(name, lines);
    return (at: number, labels: Labels, more: readonly string[] = []): string => {
      const own = (): Labels => labels.map((value) => values[value] ?? value);
      lines[at] ??= lineOf(name, [...more, ...pairs(names, own())]);
      return lines[at];
    };
  };
}

function plainSeries(help: string, type: "counter" | "gauge", names: Labels, caps: readonly ((value: string) => string)[]) {
  const { all, at } = entries<{ value: number | null }>(caps, () => ({ value: null }));
  const lines = linesOf(names);
  // What was never counted is 0; what was never read is not known.
  if (names.length === 0 && type === "counter") at([]).value = 0;
  const series: Series & Printed = {
    inc(labels = [], by = 1) {
      const one = at(labels);
      one.value = (one.value ?? 0) + by;
    },
    set(labels, value) {
      at(labels).value = value;
    },
    max(labels, value) {
      const one = at(labels);
      one.value = Math.max(one.value ?? value, value);
    },
    reset() {
      for (const { entry } of all) entry.value = null;
    },
    text(name, values) {
      let text = head(name, help, type);
      const line = lines(name, values);
      for (const [i, { labels, entry }] of all.entries())
        if (entry.value !== null && Number.isFinite(entry.value)) text += `${line(i, labels)}${entry.value}\n`;
      return text;
    },
  };
  return series;
}

function histogramSeries(
  help: string,
  buckets: readonly number[],
  names: Labels,
  caps: readonly ((value: string) => string)[],
): Durations & Printed {
  const bounds = [...buckets.map(String), "+Inf"];
  const { all, at } = entries(caps, () => ({ counts: bounds.map(() => 0), sum: 0 }));
  const lines = linesOf(names);
  return {
    observe(labels, value) {
      const one = at(labels);
      let place = 0;
      while (place < buckets.length && value > (buckets[place] as number)) place++;
      one.counts[place] = (one.counts[place] as number) + 1;
      one.sum += value;
    },
    text(name, values) {
      let text = head(name, help, "histogram");
      const [bucket, sum, total] = [
        lines(`${name}_bucket`, values),
        lines(`${name}_sum`, values),
        lines(`${name}_count`, values),
      ];
      for (const [i, { labels, entry }] of all.entries()) {
        let count = 0;
        for (const [b, le] of bounds.entries()) {
          count += entry.counts[b] as number;
          text += `${bucket(i * bounds.length + b, labels, [`le="${le}"`])}${count}\n`;
        }
        text += `${sum(i, labels)}${entry.sum}\n${total(i, labels)}${count}\n`;
      }
      return text;
    },
  };
}

const NONE = {};

export function createSeriesBook(): SeriesBook {
  const all: { readonly one: Printed; readonly name: string; readonly values: Readonly<Record<string, string>> }[] = [];
  // Of all series together, so that a topic has its name in each of them or in none.
  const topics = cappedLabels(TOPICS_MAX);
  const capsOf = (names: Labels) => names.map((name) => (name === "topic" ? topics : cappedLabels(VALUES_MAX)));
  const kept = <T extends Printed>(one: T, name: string, { alias, aliasValues = NONE }: SeriesOptions): T => {
    all.push({ one, name, values: NONE });
    if (alias !== undefined) all.push({ one, name: alias, values: aliasValues });
    return one;
  };
  const plain =
    (type: "counter" | "gauge"): SeriesBook["counter"] =>
    (name, help, options = NONE as SeriesOptions) => {
      const { labels = [] } = options;
      return kept(plainSeries(help, type, labels, capsOf(labels)), name, options);
    };
  return {
    counter: plain("counter"),
    gauge: plain("gauge"),
    histogram(name, help, buckets, options = NONE as SeriesOptions) {
      const { labels = [] } = options;
      return kept(histogramSeries(help, buckets, labels, capsOf(labels)), name, options);
    },
    text: () => all.map(({ one, name, values }) => one.text(name, values)).join("\n"),
  };
}
