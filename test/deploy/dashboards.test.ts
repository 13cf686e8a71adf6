/** The dashboards: models that Grafana reads as they are meant, queries that Prometheus parses, and nothing asked for that no process exports. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ALERTS } from "../../deploy/alerts/all.ts";
import { printedDashboards } from "../../deploy/grafana/all.ts";
import { promtool } from "../support/prometheus.ts";
import { faultsOf, type Model, type Panel, queriesOf, queryFaults } from "./dashboard-faults.ts";

const MODELS = Object.values(printedDashboards).map((print) => JSON.parse(print()) as Model);
const [OURS, SEEDS] = MODELS as [Model, Model];
const PAGES = new Set(ALERTS.map(({ name }) => name));

/** Row → titles of its panels. */
function rowsOf({ panels }: Model): Record<string, string[]> {
  const rows: [string, string[]][] = [];
  for (const { type, title } of panels)
    if (type === "row") rows.push([title, []]);
    else rows.at(-1)?.[1].push(title);
  return Object.fromEntries(rows);
}

describe("dashboards", { timeout: 60_000 }, () => {
  it.each(MODELS.map((model) => [model.uid, model] as const))(
    "CON-26: %s is whole, and asks only for what is declared",
    (_, model) => {
      expect(faultsOf(model, PAGES)).toEqual([]);
      expect(model.schemaVersion).toBeGreaterThanOrEqual(41);
    },
  );

  it("Prometheus parses every query", async () => {
    const folder = await mkdtemp(join(tmpdir(), "makegood-dashboards-"));
    const filled = (expr: string) => expr.replaceAll("$__rate_interval", "5m").replace(/\$\w+/g, ".+");
    const rules = MODELS.flatMap(queriesOf).map((expr, at) => ({ record: `query_${at}`, expr: filled(expr) }));
    await writeFile(join(folder, "queries.yaml"), JSON.stringify({ groups: [{ name: "queries", rules }] }));
    expect(await promtool("check", "rules", join(folder, "queries.yaml"))).toContain(`${rules.length} rules found`);
    await rm(folder, { recursive: true });
  });

  it("REC-35, REC-58: m10-recovery has the rows of the seed, and ours has conservation first", () => {
    expect(SEEDS.uid).toBe("m10-recovery");
    const rows = rowsOf(SEEDS);
    expect(Object.fromEntries(Object.entries(rows).map(([title, panels]) => [title, panels.length]))).toEqual({
      ...{ Overview: 6, Ingest: 2, Queue: 2, Worker: 3, "Suggestions and view": 3 },
      ...{ Locks: 4, Outbox: 5, "Archive and retention": 4, Alerts: 1 },
    });
    const asked = queriesOf(SEEDS).join("\n");
    for (const name of ["recovery_ingest_latency_seconds_bucket", "m10_lock_duration_seconds_bucket", "m10_outbox_lag_seconds"])
      expect(asked).toContain(name);
    for (const q of ["0.5", "0.95", "0.99"])
      expect(asked).toContain(`histogram_quantile(${q}, sum by (le) (rate(recovery_ingest_latency`);
    expect(Object.keys(rowsOf(OURS))[0]).toMatch(/^Conservation/);
  });

  it("a panel of an alert has the alert's own threshold, and its page", () => {
    const panel = SEEDS.panels.find(({ title }) => title === "Queue depth") as Panel;
    expect(panel.fieldConfig?.defaults.thresholds.steps.at(-1)).toEqual({ color: "red", value: 5_000 });
    expect(panel.links?.[0]?.url).toBe("$runbooks/M10QueueDepthCritical.md");
    expect(panel.description).toContain("No worker: start one, `makegood work");
    expect(panel.description).not.toMatch(/```|\]\(/);
  });

  it("what is broken is found", () => {
    const changed = (change: (model: { panels: Panel[]; templating: Model["templating"] }) => void): string[] => {
      const model = JSON.parse(JSON.stringify(SEEDS)) as Model & { panels: Panel[] };
      change(model);
      return faultsOf(model, PAGES);
    };
    const asks = (expr: string) => changed(({ panels }) => Object.assign(panels[1]?.targets?.[0] ?? {}, { expr }));
    expect(changed(({ panels }) => Object.assign(panels[1] as Panel, { id: 3 }))).toEqual(["two panels have the id 3"]);
    expect(changed(({ panels }) => Object.assign((panels[1] as Panel).gridPos, { w: 5 }))).toEqual([
      "Queue depth lies on Stream consumers",
    ]);
    expect(changed(({ panels }) => Object.assign(panels[1] as Panel, { type: "graph" }))).toEqual([
      "Queue depth is of the type graph",
    ]);
    expect(changed(({ panels }) => Object.assign(panels[1] as Panel, { targets: [] }))).toEqual(["Queue depth asks for nothing"]);
    expect(changed(({ panels }) => Object.assign(panels[1] as Panel, { links: [{ url: "$runbooks/Gone.md" }] }))).toHaveLength(1);
    expect(changed(({ templating }) => (templating.list as unknown[]).pop())[0]).toBe("$runbooks is used and not declared");
    expect(asks('max (recovery_gone{job=~"$job"})')[0]).toMatch(/^recovery_gone is not declared/);
    expect(asks('max (recovery_db_queue_depth{place="a"})')[0]).toMatch(/^recovery_db_queue_depth has no label place/);
    expect(asks('sum (rate(recovery_db_queue_depth{job=~"$job"}[5m]))')[0]).toMatch(/is a gauge/);
    expect(asks('sum (recovery_ingest_total{job=~"$job"})')[0]).toMatch(/is a counter/);
    expect([...queryFaults("max (recovery_db_queue_depth)")]).toHaveLength(1);
    expect(asks('max by (topic) (recovery_db_queue_depth{job=~"$job"})')[0]).toMatch(/nothing in it has the label topic/);
  });
});
