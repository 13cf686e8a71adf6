/**
 * The alerts under promtool: each fires in one case and stays quiet in another, each names a runbook that is there, and none asks for a
 * metric that no process exports.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { RUNBOOKS } from "../../deploy/alerts/alert.ts";
import { ALERTS, casesOf, FILES, printedAlerts } from "../../deploy/alerts/all.ts";
import { METRICS, type Metric, metricNames } from "../../src/observe/table.ts";
import { promtool } from "../support/prometheus.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

describe("alerts", { timeout: 180_000 }, () => {
  it("REC-34, AUD-29, EV-42, EV-9, EV-20, DR-38, CON-26: each fires where it should and stays quiet where it should not", async () => {
    const folder = await mkdtemp(join(tmpdir(), "makegood-alerts-"));
    for (const alert of ALERTS) {
      const { rules, cases } = casesOf(alert);
      await writeFile(join(folder, `${alert.name}.rules.yaml`), rules);
      await writeFile(join(folder, `${alert.name}.yaml`), cases);
    }
    expect(await promtool("check", "rules", ...Object.keys(FILES).map((path) => join(ROOT, path)))).toContain("SUCCESS");
    const told = await promtool("test", "rules", ...ALERTS.map(({ name }) => join(folder, `${name}.yaml`)));
    expect(told.match(/SUCCESS/g)).toHaveLength(ALERTS.length);
    await rm(folder, { recursive: true, force: true });
  });

  it("the seeds' fifteen in five groups, each with an absent(), and EV-42's nine are among them", () => {
    const [ingest, queue, worker, view, candidates] = FILES["deploy/prometheus/recovery.yaml"] ?? [];
    const groups = [ingest, queue, worker, view, candidates].map((group) => group?.alerts ?? []);
    expect(groups.map((alerts) => alerts.filter(({ expr }) => !expr.startsWith("absent(")).length)).toEqual([3, 4, 3, 3, 2]);
    expect(groups.every((alerts) => alerts.some(({ expr }) => expr.startsWith("absent(")))).toBe(true);
    expect(ALERTS.filter((alert) => alert.default)).toHaveLength(9);
    expect(FILES["deploy/prometheus/audit.yaml"]?.[0]?.alerts).toHaveLength(4);
    expect(new Set(ALERTS.map(({ name }) => name)).size).toBe(ALERTS.length);
  });

  // What an alert is tested with follows from its rule where that compares one gauge with a number: the number itself is held here.
  it.each([
    ["M10IngestErrorRateHigh", "> 0.05", "5m", "critical"],
    ["M10EnqueueFailureRateHigh", "> 0.01", "5m", "critical"],
    ["M10QueueDepthCritical", "> 5000", "5m", "critical"],
    ["M10MatviewVeryStale", "> 3600", "5m", "critical"],
    ["M10NoStreamConsumers", "== 0", "5m", "critical"],
    ["M10OutboxPendingHigh", "> 1000", "10m", "warning"],
    ["M10OutboxLagHigh", "> 300", "5m", "warning"],
    ["M10DeadLettersHigh", "> 100", "15m", "warning"],
    ["M10ArchiveLarge", "> 10000", "1h", "info"],
    ["AuditDLQHigh", "> 5000", "5m", "warning"],
    ["AuditDLQCritical", "> 9000", "5m", "critical"],
    ["AuditWriteFailureSpike", "> 100", "0m", "critical"],
    ["AuditPermanentFailures", "> 0", "0m", "critical"],
    ["MakegoodBillingDeadLetterOld", "> 86400", "5m", "critical"],
  ])("%s is as the seeds and EV-9 have it: %s for %s, %s", (name, bound, held, severity) => {
    const { expr = "", ...alert } = ALERTS.find((one) => one.name === name) ?? {};
    expect([expr.slice(-bound.length), alert]).toEqual([bound, expect.objectContaining({ for: held, severity })]);
  });

  it("REC-34: the guide's Prometheus takes the rules, scrapes each 5 s, and its filter lets every metric through", async () => {
    const guide = await readFile(join(ROOT, "docs/guide/operations.md"), "utf8");
    const [, block = ""] = /```yaml\n(rule_files:[\s\S]*?)```/.exec(guide) ?? [];
    const folder = await mkdtemp(join(tmpdir(), "makegood-prometheus-"));
    await writeFile(join(folder, "token"), "a-token");
    const here = block.replace("/etc/prometheus/makegood/", `${ROOT}deploy/prometheus/`);
    await writeFile(join(folder, "all.yaml"), here.replace("/etc/prometheus/makegood-token", join(folder, "token")));
    const told = await promtool("check", "config", join(folder, "all.yaml"));
    expect(told).toContain(`${Object.keys(FILES).length} rule files`);
    const { scrape_configs, remote_write } = parse(block);
    expect(scrape_configs[0].scrape_interval).toBe("5s");
    const filter = new RegExp(`^(?:${remote_write[0].write_relabel_configs[0].regex})$`);
    expect([...metricNames(), "makegood_attempt_seconds_bucket"].filter((name) => !filter.test(name))).toEqual([]);
    expect(filter.test("nodejs_version_info")).toBe(false);
    await rm(folder, { recursive: true });
  });

  it("ask only for declared metrics, in the form that their type has, and name a runbook that is there", () => {
    const known = new Set(metricNames());
    const histograms = Object.entries<Metric>(METRICS).flatMap(([name, { type }]) =>
      type === "histogram" ? [`${name}_bucket`] : [],
    );
    for (const { name, expr } of ALERTS) {
      const asked = expr.match(/\b(makegood|recovery|m10|kubernaut)_[a-z0-9_]+/g) ?? [];
      expect([name, asked.filter((metric) => !known.has(metric) && !histograms.includes(metric))]).toEqual([name, []]);
      expect([name, asked.length > 0]).toEqual([name, true]);
      expect(Object.keys(printedAlerts)).toContain(`${RUNBOOKS}/${name}.md`);
    }
  });

  it("no metric has a label that Prometheus sets by itself: it would be renamed, and a rule by it would find nothing", () => {
    const named = Object.entries<Metric>(METRICS).filter(([, { labels }]) =>
      labels.some((label) => ["job", "instance"].includes(label)),
    );
    expect(named.map(([name]) => name)).toEqual([]);
  });
});
