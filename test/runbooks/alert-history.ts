/**
 * Whether an alert fires, by its rule and without waiting for its minutes: what a live process showed at a moment is held for as long as a
 * rule asks, and promtool evaluates the rule over that history.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ALERTS, rules } from "../../deploy/alerts/all.ts";
import { promtool } from "../support/prometheus.ts";

/** Longer than the rules that the pages are about are held before they fire. */
const MINUTES = 30;
/** Of Node itself: no rule reads them. */
const NOT_OURS = /^(process|nodejs)_/;
const COUNTER = /^\w+_total\{/;

/** What a scrape showed, series → value, with the labels that Prometheus adds. */
function samples(scrape: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of scrape.split("\n")) {
    const match = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match || NOT_OURS.test(match[1] as string)) continue;
    const labels = ['job="makegood"', 'instance="here"', ...(match[2] ? [match[2]] : [])];
    found.set(`${match[1]}{${labels.join(",")}}`, match[3] as string);
  }
  return found;
}

/** A level is held; what a counter rose by it rose by in the last minute of its moment, because a rate that is over fires no more. */
function minutes(name: string, shown: readonly ReadonlyMap<string, string>[]): string[] {
  const values = shown.map((one) => one.get(name) ?? "stale");
  return values.flatMap((value, at) => {
    const before = COUNTER.test(name) ? (values[at - 1] ?? value) : value;
    return [...Array<string>(MINUTES - 1).fill(before), value];
  });
}

/** One moment after another, each held for MINUTES. Throws what promtool says where `alert` does not fire, or fires, otherwise than `fires` says. */
export async function checkFiring(alert: string, moments: readonly string[], fires: readonly boolean[]): Promise<void> {
  const named = ALERTS.filter(({ name }) => name === alert);
  if (named.length !== 1) throw new Error(`there is no alert ${alert}`);
  const shown = moments.map(samples);
  const series = [...new Set(shown.flatMap((one) => [...one.keys()]))];
  const input_series = series.map((name) => ({ series: name, values: minutes(name, shown).join(" ") }));
  const expr = `clamp_max(count(ALERTS{alertname="${alert}",alertstate="firing"}), 1) or vector(0)`;
  const promql_expr_test = fires.map((is, at) => {
    return { expr, eval_time: `${(at + 1) * MINUTES - 1}m`, exp_samples: [{ labels: "{}", value: is ? 1 : 0 }] };
  });
  const tests = [{ interval: "1m", input_series, promql_expr_test }];
  const folder = await mkdtemp(join(tmpdir(), "makegood-alert-"));
  try {
    await writeFile(join(folder, "rules.yaml"), rules([{ name: alert, alerts: named }]));
    // JSON is YAML.
    await writeFile(join(folder, "test.yaml"), JSON.stringify({ rule_files: ["rules.yaml"], evaluation_interval: "1m", tests }));
    await promtool("test", "rules", join(folder, "test.yaml")).catch((error: Error) => {
      throw new Error(`${alert} does not fire as it should: ${error.message}`);
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}
