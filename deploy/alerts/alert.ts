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
