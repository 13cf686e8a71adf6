/** Queries of the dashboards, made from the table of metrics: a metric or label that no process exports cannot be asked for. */
import { METRICS, type Metric } from "../../src/observe/table.ts";

const DECLARED: Readonly<Record<string, Metric>> = Object.fromEntries(
  Object.entries<Metric>(METRICS).flatMap(([name, metric]) => [
    [name, metric],
    ...(metric.alias ? [[metric.alias, metric]] : []),
  ]),
);

export interface Asked {
  /** Kept apart; all the rest is added up, or the worst of it is taken. */
  readonly by?: readonly string[];
  /** Only these: label → value. */
  readonly where?: Readonly<Record<string, string>>;
  /** Which process is believed, where each speaks for itself; the whole system is the same in all of them. */
  readonly take?: "max" | "min";
}

/** Labels that a variable of the dashboard narrows. Two matchers of one label hold together. */
const NARROWED: Readonly<Record<string, string>> = {
  topic: 'topic=~"($namespace)/.+",topic=~"$topic"',
  job_name: 'job_name=~"$job_name"',
};

function series(name: string, form: Metric["type"], { by = [], where = {} }: Asked, suffix = ""): string {
  const metric = DECLARED[name];
  if (metric?.type !== form) throw new Error(`no ${form} ${name} is declared in src/observe/table.ts`);
  const stranger = [...by, ...Object.keys(where)].find((label) => !metric.labels.includes(label));
  if (stranger !== undefined) throw new Error(`${name} has no label ${stranger}`);
  const narrowed = metric.labels.flatMap((label) => NARROWED[label] ?? []);
  const only = Object.entries(where).map(([label, value]) => `${label}="${value}"`);
  return `${name}${suffix}{${['job=~"$job"', ...narrowed, ...only].join(",")}}`;
}

const over = (verb: string, by: readonly string[] = [], inner: string) =>
  `${verb}${by.length > 0 ? ` by (${by.join(", ")})` : ""} (${inner})`;

/** How it stands. */
export const level = (name: string, asked: Asked = {}): string =>
  over(asked.take ?? "max", asked.by, series(name, "gauge", asked));

/** Of things that add up over their labels, such as messages over topics: each counted once, not once a process. */
export const total = (name: string, each: readonly string[], asked: Asked = {}): string =>
  over("sum", asked.by, level(name, { ...asked, by: each }));

/** A second. */
export const rate = (name: string, asked: Asked = {}): string =>
  over("sum", asked.by, `rate(${series(name, "counter", asked)}[$__rate_interval])`);

/** In so long. */
export const grown = (name: string, during: string, asked: Asked = {}): string =>
  over("sum", asked.by, `increase(${series(name, "counter", asked)}[${during}])`);

export const quantile = (q: number, name: string, asked: Asked = {}): string =>
  `histogram_quantile(${q}, ${over("sum", ["le", ...(asked.by ?? [])], `rate(${series(name, "histogram", asked, "_bucket")}[$__rate_interval])`)})`;
