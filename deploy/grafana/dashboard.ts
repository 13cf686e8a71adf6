/** A dashboard of rows of panels: ids, places in the grid of 24 columns, and the variables that its queries use. */
import { type Panel, SOURCE } from "./panel.ts";

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Described {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  /** Which alerts are marked in every picture. */
  readonly alerts: string;
  readonly variables: readonly object[];
  readonly rows: readonly Row[];
}

const COLUMNS = 24;

/** One after the other, a new line where the next one does not fit. */
function placed(rows: readonly Row[]): object[] {
  const panels: object[] = [];
  let y = 0;
  const put = (title: string, gridPos: object, body: object) => panels.push({ id: panels.length + 1, title, gridPos, ...body });
  for (const { title, panels: inRow } of rows) {
    put(title, { x: 0, y: y++, w: COLUMNS, h: 1 }, { type: "row", collapsed: false, panels: [] });
    let [x, high] = [0, 0];
    for (const { title, w, h, body } of inRow) {
      if (x + w > COLUMNS) [x, y, high] = [0, y + high, 0];
      put(title, { x, y, w, h }, body);
      [x, high] = [x + w, Math.max(high, h)];
    }
    y += high;
  }
  return panels;
}

const shown = { hide: 0, skipUrlSync: false };

/** Values of a label; all of them are whatever matches `all`, also those that come later. */
export const labelVariable = (name: string, label: string, query: string, all: string, regex = "") => ({
  ...{
    name,
    label,
    type: "query",
    datasource: SOURCE,

    query: { query, refId: name },
    regex,
    sort: 1,
    refresh: 2,
  },
  ...{ multi: true, includeAll: true, allValue: all, current: { selected: true, text: ["All"], value: ["$__all"] }, options: [] },
  ...shown,
});

const RUNBOOKS = "docs/runbooks/alerts";
const everywhere = [
  {
    ...{ name: "datasource", label: "Prometheus", type: "datasource", query: "prometheus", regex: "", refresh: 1 },
    ...{ multi: false, includeAll: false, current: { text: "", value: "" }, options: [], ...shown },
  },
  labelVariable("job", "Scrape job", "label_values(makegood_info, job)", ".+"),
  {
    ...{ name: "runbooks", label: "Runbooks at", type: "textbox", query: RUNBOOKS, ...shown },
    description: "Where the pages of docs/runbooks/alerts are served; links of panels go there.",
    current: { selected: true, text: RUNBOOKS, value: RUNBOOKS },
    options: [{ selected: true, text: RUNBOOKS, value: RUNBOOKS }],
  },
];

export const print = ({ uid, title, description, alerts, variables, rows }: Described): string => {
  const expr = `max by (alertname) (ALERTS{alertstate="firing",alertname=~"${alerts}"})`;
  const annotation = {
    ...{ name: "Alerts", enable: true, hide: false, iconColor: "red", datasource: SOURCE, titleFormat: "{{alertname}}" },
    target: { refId: "Alerts", expr },
  };
  const link = { type: "dashboards", title: "Makegood", icon: "dashboard", tooltip: "", url: "", tags: ["makegood"] };
  const links = [{ ...link, asDropdown: false, includeVars: true, keepTime: true, targetBlank: false }];
  const model = {
    ...{ uid, title, description, tags: ["makegood"], schemaVersion: 41, version: 1, editable: true, graphTooltip: 1 },
    ...{
      timezone: "browser",
      refresh: "30s",
      time: { from: "now-6h", to: "now" },
      timepicker: {},
      fiscalYearStartMonth: 0,
      links,
    },
    annotations: { list: [annotation] },
    templating: { list: [...everywhere, ...variables] },
    panels: placed(rows),
  };
  return `${JSON.stringify(model, null, 1)}\n`;
};
