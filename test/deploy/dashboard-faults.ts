/** What is wrong with a dashboard, as Grafana and Prometheus would find it: its model, its variables, its links and its queries. */
import { METRICS, type Metric } from "../../src/observe/table.ts";

export interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat: string;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
  readonly links?: readonly { readonly url: string }[];
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string; readonly thresholds: { readonly steps: readonly { value: number | null }[] } };
  };
}

export interface Model {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string; readonly query: unknown }[] };
  readonly annotations: { readonly list: readonly { readonly target: { readonly expr: string } }[] };
}

/** The present ones; graph, singlestat and table-old are gone from Grafana. */
const TYPES = ["row", "stat", "timeseries", "state-timeline", "table"];
const COLUMNS = 24;

export const queriesOf = (model: Model): string[] => [
  ...model.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...model.annotations.list.map(({ target }) => target.expr),
];

export function faultsOf(model: Model, pages: ReadonlySet<string>): string[] {
  return [
    ...layoutFaults(model.panels),
    ...model.panels.flatMap((one) => [...panelFaults(one, pages)]),
    ...variableFaults(model),
    ...queriesOf(model).flatMap((expr) => [...queryFaults(expr)]),
  ];
}

function* layoutFaults(panels: readonly Panel[]): Generator<string> {
  const ids = new Set<number>();
  for (const [at, { id, title, gridPos: a }] of panels.entries()) {
    if (ids.has(id)) yield `two panels have the id ${id}`;
    ids.add(id);
    if (a.x < 0 || a.w < 1 || a.h < 1 || a.x + a.w > COLUMNS) yield `${title} is outside of the grid`;
    for (const { title: other, gridPos: b } of panels.slice(at + 1))
      if (a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h) yield `${title} lies on ${other}`;
  }
}

function* panelFaults(
  { type, title, description = "", targets = [], links = [], fieldConfig }: Panel,
  pages: ReadonlySet<string>,
): Generator<string> {
  if (!TYPES.includes(type)) yield `${title} is of the type ${type}`;
  if (type === "row") return;
  if (title === "") yield "a panel has no title";
  if (targets.length === 0) yield `${title} asks for nothing`;
  if (new Set(targets.map(({ refId }) => refId)).size !== targets.length) yield `${title} has two queries of one refId`;
  if (!description.includes("**What to do.**")) yield `${title} does not say what to do`;
  if (fieldConfig?.defaults.unit === undefined) yield `${title} has no unit`;
  const values = fieldConfig?.defaults.thresholds.steps.map(({ value }) => value) ?? [];
  if (values[0] !== null || values.slice(1).some((value) => value === null)) yield `${title} has thresholds without a ground`;
  for (const { url } of links) {
    const [, page] = /^\$runbooks\/(\w+)\.md$/.exec(url) ?? [];
    if (page === undefined || !pages.has(page)) yield `${title} links to ${url}`;
  }
}

function* variableFaults(model: Model): Generator<string> {
  const declared = model.templating.list.map(({ name }) => name);
  const text = JSON.stringify(model);
  const used = new Set(
    [...text.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name as string).filter((name) => !name.startsWith("__")),
  );
  for (const name of used) if (!declared.includes(name)) yield `$${name} is used and not declared`;
  for (const name of declared) if (!used.has(name)) yield `$${name} is declared and not used`;
  for (const { name, type, query } of model.templating.list) {
    if (type !== "query") continue;
    const [, metric = "", label = ""] =
      /^label_values\((\w+)(?:\{.*\})?, (\w+)\)$/.exec((query as { query: string }).query) ?? [];
    if (!labelsOf(metric)?.includes(label)) yield `$${name} asks for ${metric} by ${label}`;
  }
}

/** What Prometheus adds to each series by itself. */
const ADDED = ["job", "instance"];
const OF_ALERTS = ["alertname", "alertstate", "severity", "topic", "job_name"];

function metricOf(series: string): { readonly metric: Metric; readonly bucket: boolean } | undefined {
  const bucket = series.endsWith("_bucket");
  const name = bucket ? series.slice(0, -"_bucket".length) : series;
  const metric = Object.entries<Metric>(METRICS).find(([own, { alias }]) => own === name || alias === name)?.[1];
  return metric && (metric.type === "histogram") === bucket ? { metric, bucket } : undefined;
}

function labelsOf(series: string): readonly string[] | undefined {
  if (series === "ALERTS") return OF_ALERTS;
  const found = metricOf(series);
  return found && [...found.metric.labels, ...(found.bucket ? ["le"] : []), ...ADDED];
}

const WORDS = /^(sum|max|min|count|by|rate|increase|histogram_quantile|time)$/;

export function* queryFaults(expr: string): Generator<string> {
  const bare = expr.replace(/"[^"]*"/g, '""');
  const known: string[] = [];
  for (const [, before = "", name = "", inner = ""] of bare.matchAll(/(\w+\()?\b([a-zA-Z]\w*)\{([^}]*)\}/g)) {
    const labels = labelsOf(name);
    if (labels === undefined) yield `${name} is not declared, or not in this form: ${expr}`;
    known.push(...(labels ?? []));
    for (const [, label = ""] of inner.matchAll(/(\w+)=/g))
      if (labels && !labels.includes(label)) yield `${name} has no label ${label}: ${expr}`;
    const counts = metricOf(name)?.metric.type;
    const counted = before === "rate(" || before === "increase(";
    if (counts && counted !== (counts !== "gauge")) yield `${name} is a ${counts}, and is not asked for as one: ${expr}`;
  }
  for (const [, by = ""] of bare.matchAll(/ by \(([^)]*)\)/g))
    for (const label of by.split(", ")) if (!known.includes(label)) yield `nothing in it has the label ${label}: ${expr}`;
  const rest = bare.replace(/\w+\{[^}]*\}/g, "").replace(/ by \([^)]*\)|\[[^\]]*\]/g, "");
  for (const [name] of rest.matchAll(/[a-zA-Z_]\w*/g))
    if (!WORDS.test(name)) yield `${name} is asked for without labels: ${expr}`;
}
