/** An alert with its runbook and the two cases that it is tested with: one in which it fires, one in which it must not. */

/** Series of a metric, each a value a minute, as promtool writes them: `0+1x20`, `5x20`, `_x20`. */
export type Series = Readonly<Record<string, string>>;

export interface Alert {
  readonly name: string;
  readonly severity: "critical" | "warning" | "info";
  readonly for: string;
  readonly expr: string;
  readonly summary: string;
  /** One of the nine that EV-42 keeps. */
  readonly default?: boolean;
  /** What it means, how to look, what to do, and how to know that it is over. */
  readonly means: string;
  readonly look: string;
  readonly act: string;
  readonly over: string;
  readonly fires: { readonly series: Series; readonly labels?: Readonly<Record<string, string>>; readonly at?: string };
  readonly quiet: { readonly series: Series; readonly at?: string };
}

export interface Group {
  readonly name: string;
  readonly alerts: readonly Alert[];
}

export const RUNBOOKS = "docs/runbooks/alerts";
/** When a case is looked at, unless it says otherwise. */
export const AT = "90m";

export type Row = Pick<Alert, "summary" | "means" | "look" | "act" | "over"> &
  Partial<Pick<Alert, "default" | "fires" | "quiet">>;

/** A line of the table. What it is tested with follows from a rule that compares one gauge with a number; other rules say it. */
export const alert = (name: string, severity: Alert["severity"], held: string, expr: string, row: Row): Alert => {
  const { fires = bounds(expr).fires, quiet = bounds(expr).quiet } = row;
  return { name, severity, for: held, expr, ...row, fires, quiet };
};

const GAUGE = /^(?:max|min|sum)(?: by \((?<by>\w+)\))? ?\((?<metric>\w+)(?:\{(?<where>[^}]*)\})?\) (?<is>>|==) (?<bound>\d+)$/;

/** Just beyond the bound, and just not. */
function bounds(expr: string): Pick<Alert, "fires" | "quiet"> {
  const { by, metric, where, is, bound } = GAUGE.exec(expr)?.groups ?? {};
  if (bound === undefined) throw new Error(`the cases of this rule are to be given: ${expr}`);
  const labels: Record<string, string> = by ? { [by]: "a/b" } : {};
  const selector = [...(where ? [where] : []), ...(by ? [`${by}="a/b"`] : [])].join(",");
  const at = (value: number) => ({ series: { [`${metric}{${selector}}`]: `${value}x120` } });
  const [bad, well] = is === ">" ? [Number(bound) + 1, Number(bound)] : [Number(bound), 1 - Number(bound)];
  return { fires: { ...at(bad), labels }, quiet: at(well) };
}
