/**
 * Panels as Grafana's dashboard model has them (schema 41). A panel that names an alert has that alert's threshold, what to do and the link
 * to its page, so that the rule and the picture cannot differ.
 */
import { ALERTS } from "../alerts/all.ts";

export interface Query {
  readonly expr: string;
  readonly legend?: string;
}

export interface About {
  readonly says: string;
  /** Needed where no alert says what to do. */
  readonly act?: string;
  readonly alert?: string;
  readonly unit?: string;
  /** Red from here on; where it is not said, what the alert's rule compares with. */
  readonly limit?: number | undefined;
  /** Red below it: what must be there. */
  readonly least?: number;
  /** Value → word and colour. */
  readonly words?: Readonly<Record<string, readonly [string, string]>>;
  readonly width?: number;
}

export interface Panel {
  readonly title: string;
  readonly w: number;
  readonly h: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export const SOURCE = { type: "prometheus", uid: "$datasource" };
export const PAGE = (alert: string) => `$runbooks/${alert}.md`;

function alertOf(name: string) {
  const found = ALERTS.find((alert) => alert.name === name);
  if (!found) throw new Error(`there is no alert ${name}`);
  return found;
}

/** More than 0 of something that is counted is 1. */
function limitOf(about: About): number | undefined {
  if ("limit" in about || about.alert === undefined) return about.limit;
  const [, number] = / > ([\d.]+)$/.exec(alertOf(about.alert).expr) ?? [];
  return number === undefined ? undefined : Number(number) || 1;
}

function steps(about: About) {
  const step = (color: string, value: number | null) => ({ color, value });
  if (about.least !== undefined) return [step("red", null), step("green", about.least)];
  const limit = limitOf(about);
  return [step("green", null), ...(limit === undefined ? [] : [step("red", limit)])];
}

/** Shell blocks and links from page to page belong to the page. */
const inWords = (text: string): string =>
  text
    .replace(/\n*```[\s\S]*?```/g, "")
    .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .trim();

function described({ says, act, alert }: About): string {
  if (alert === undefined) return act === undefined ? says : `${says}\n\n**What to do.** ${act}`;
  const { summary, act: todo, severity } = alertOf(alert);
  return `${says}\n\n**What to do.** ${act ?? inWords(todo)}\n\nAlert ${alert} (${severity}): ${summary.toLowerCase()}.`;
}

function defaults(about: About, custom: object = {}) {
  const { unit = "short", words = {} } = about;
  const options = Object.fromEntries(
    Object.entries(words).map(([value, [text, color]], index) => [value, { text, color, index }]),
  );
  return {
    ...{ unit, min: 0, noValue: "not known", custom },
    mappings: Object.keys(options).length > 0 ? [{ type: "value", options }] : [],
    thresholds: { mode: "absolute", steps: steps(about) },
  };
}

/** `now`: only what holds at this moment. A gauge that is absent now must not be shown with what it was an hour ago. */
function targets(queries: readonly Query[], now: boolean, format = "time_series") {
  return queries.map(({ expr, legend = "__auto" }, at) => ({
    ...{ refId: String.fromCharCode(65 + at), datasource: SOURCE, editorMode: "code", expr },
    ...{ legendFormat: legend, instant: now, range: !now, format },
  }));
}

const asList = (queries: string | readonly Query[]): readonly Query[] =>
  typeof queries === "string" ? [{ expr: queries }] : queries;

function panel(type: string, title: string, about: About, size: { w: number; h: number }, body: object): Panel {
  const { alert } = about;
  const links = alert === undefined ? [] : [{ title: `What to do: ${alert}`, url: PAGE(alert), targetBlank: true }];
  return {
    ...{ title, ...size, w: about.width ?? size.w },
    body: { type, description: described(about), datasource: SOURCE, links, transparent: false, ...body },
  };
}

export function stat(title: string, queries: string | readonly Query[], about: About, options: object = {}): Panel {
  return panel(
    "stat",
    title,
    about,
    { w: 4, h: 4 },
    {
      fieldConfig: { defaults: { ...defaults(about), color: { mode: "thresholds" } }, overrides: [] },
      options: {
        ...{
          colorMode: "value",
          graphMode: "none",
          justifyMode: "auto",
          orientation: "auto",
          textMode: "auto",
          wideLayout: true,
        },
        reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
        ...options,
      },
      targets: targets(asList(queries), true),
    },
  );
}

const NO_STACK = { mode: "none", group: "A" };

export function lines(title: string, queries: string | readonly Query[], about: About, custom: object = {}): Panel {
  const limited = steps(about).length > 1;
  const drawn = { drawStyle: "line", lineWidth: 1, fillOpacity: 10, showPoints: "auto", spanNulls: false, stacking: NO_STACK };
  const style = { ...drawn, thresholdsStyle: { mode: limited ? "dashed" : "off" }, ...custom };
  return panel(
    "timeseries",
    title,
    about,
    { w: 8, h: 7 },
    {
      fieldConfig: { defaults: { ...defaults(about, style), color: { mode: "palette-classic" } }, overrides: [] },
      options: {
        legend: { displayMode: "list", placement: "bottom", showLegend: true, calcs: [] },
        tooltip: { mode: "multi", sort: "desc" },
      },
      targets: targets(asList(queries), false),
    },
  );
}

export const stacked = (title: string, queries: string | readonly Query[], about: About): Panel =>
  lines(title, queries, about, { fillOpacity: 40, stacking: { mode: "normal", group: "A" } });

export const bars = (title: string, queries: string | readonly Query[], about: About): Panel =>
  lines(title, queries, about, { drawStyle: "bars", fillOpacity: 80, stacking: { mode: "normal", group: "A" } });

/** What held when, a lane for each series. */
export function lanes(title: string, queries: string | readonly Query[], about: About): Panel {
  return panel(
    "state-timeline",
    title,
    about,
    { w: 12, h: 7 },
    {
      fieldConfig: {
        defaults: { ...defaults(about, { fillOpacity: 70, lineWidth: 0 }), color: { mode: "thresholds" } },
        overrides: [],
      },
      options: {
        ...{ mergeValues: true, showValue: "never", rowHeight: 0.9, alignValue: "left" },
        legend: { displayMode: "list", placement: "bottom", showLegend: true },
        tooltip: { mode: "single", sort: "none" },
      },
      targets: targets(asList(queries), false),
    },
  );
}

/** Alerts that fire, as Prometheus itself says, each with its page. */
export function firing(pattern: string, about: About): Panel {
  const url = PAGE(`$\{__data.fields.alertname}`);
  return panel(
    "table",
    "Alerts that fire",
    about,
    { w: 12, h: 8 },
    {
      fieldConfig: {
        defaults: { ...defaults(about), noValue: "none", color: { mode: "thresholds" } },
        overrides: [
          {
            matcher: { id: "byName", options: "alertname" },
            properties: [{ id: "links", value: [{ title: "What to do", url, targetBlank: true }] }],
          },
        ],
      },
      options: { showHeader: true, cellHeight: "sm", footer: { show: false, reducer: ["sum"], fields: "" } },
      transformations: [{ id: "organize", options: { excludeByName: { Time: true, Value: true } } }],
      targets: targets(
        [{ expr: `max by (alertname, severity, topic, job_name) (ALERTS{alertstate="firing",alertname=~"${pattern}"})` }],
        true,
        "table",
      ),
    },
  );
}
