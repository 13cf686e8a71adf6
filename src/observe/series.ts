/**
 * Numbers with labels, in the text format of Prometheus. The label text of each is made once, when it first appears, so that a scrape of a
 * thousand topics is a walk over finished lines: a general registry makes all of it anew each time, which took a tenth of a second.
 */

/** Label values in the order of the names. */
export type Labels = readonly string[];

export interface Series {
  inc(labels?: Labels, by?: number): void;
  set(labels: Labels, value: number): void;
  reset(): void;
}

export interface Durations {
  observe(labels: Labels, seconds: number): void;
}

export interface SeriesBook {
  counter(name: string, help: string, labelNames?: Labels): Series;
  gauge(name: string, help: string, labelNames?: Labels): Series;
  histogram(name: string, help: string, labelNames: Labels, buckets: readonly number[]): Durations;
  text(): string;
}

const escaped = (value: string): string => value.replace(/[\\\n"]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`));
const pairs = (names: Labels, values: Labels): string[] => names.map((name, i) => `${name}="${escaped(values[i] ?? "")}"`);
const lineOf = (name: string, labels: readonly string[]): string =>
  labels.length > 0 ? `${name}{${labels.join(",")}} ` : `${name} `;
const head = (name: string, help: string, type: string): string => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
const numberText = (value: number): string => (Number.isNaN(value) ? "Nan" : String(value));
const keyOf = (labels: Labels): string => (labels.length === 1 ? (labels[0] as string) : labels.join("\u0000"));

function plainSeries(name: string, help: string, type: string, names: Labels): Series & { text(): string } {
  /** Null: reset, and not set since. */
  const values = new Map<string, { readonly line: string; value: number | null }>();
  const at = (labels: Labels) => {
    const key = keyOf(labels);
    let one = values.get(key);
    if (!one) {
      one = { line: lineOf(name, pairs(names, labels)), value: null };
      values.set(key, one);
    }
    return one;
  };
  // Without labels there is one line from the start.
  if (names.length === 0) at([]).value = 0;
  return {
    inc(labels = [], by = 1) {
      const one = at(labels);
      one.value = (one.value ?? 0) + by;
    },
    set(labels, value) {
      at(labels).value = value;
    },
    reset() {
      for (const one of values.values()) one.value = null;
    },
    text() {
      let text = head(name, help, type);
      for (const { line, value } of values.values()) if (value !== null) text += `${line + numberText(value)}\n`;
      return text;
    },
  };
}

function histogramSeries(name: string, help: string, names: Labels, buckets: readonly number[]): Durations & { text(): string } {
  interface One {
    readonly lines: readonly string[];
    /** By bucket, the last one for what is above them all. */
    readonly counts: number[];
    readonly sumLine: string;
    readonly countLine: string;
    sum: number;
  }
  const values = new Map<string, One>();
  const fresh = (labels: Labels): One => {
    const own = pairs(names, labels);
    const bounds = [...buckets.map(String), "+Inf"];
    return {
      lines: bounds.map((le) => lineOf(`${name}_bucket`, [`le="${le}"`, ...own])),
      counts: bounds.map(() => 0),
      sumLine: lineOf(`${name}_sum`, own),
      countLine: lineOf(`${name}_count`, own),
      sum: 0,
    };
  };
  return {
    observe(labels, seconds) {
      const key = keyOf(labels);
      let one = values.get(key);
      if (!one) {
        one = fresh(labels);
        values.set(key, one);
      }
      let place = 0;
      while (place < buckets.length && seconds > (buckets[place] as number)) place++;
      one.counts[place] = (one.counts[place] as number) + 1;
      one.sum += seconds;
    },
    text() {
      let text = head(name, help, "histogram");
      for (const { lines, counts, sumLine, countLine, sum } of values.values()) {
        let count = 0;
        for (let i = 0; i < lines.length; i++) {
          count += counts[i] as number;
          text += `${lines[i] as string}${count}\n`;
        }
        text += `${sumLine}${sum}\n${countLine}${count}\n`;
      }
      return text;
    },
  };
}

export function createSeriesBook(): SeriesBook {
  const all: { text(): string }[] = [];
  const kept = <T extends { text(): string }>(one: T): T => {
    all.push(one);
    return one;
  };
  return {
    counter: (name, help, labelNames = []) => kept(plainSeries(name, help, "counter", labelNames)),
    gauge: (name, help, labelNames = []) => kept(plainSeries(name, help, "gauge", labelNames)),
    histogram: (name, help, labelNames, buckets) => kept(histogramSeries(name, help, labelNames, buckets)),
    text: () => all.map((one) => one.text()).join("\n"),
  };
}
