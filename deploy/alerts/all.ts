/** The rule files, their tests for promtool and the runbook of each alert, printed from the list of alerts. JSON strings are YAML, too. */
import { type Alert, AT, type Group, RUNBOOKS } from "./alert.ts";
import { audit } from "./audit.ts";
import { billing } from "./billing.ts";
import { expiry } from "./expiry.ts";
import { recovery } from "./recovery.ts";
import { ours } from "./stores.ts";

export const FILES: Readonly<Record<string, readonly Group[]>> = {
  "deploy/prometheus/makegood.yaml": [...ours, billing, expiry],
  "deploy/prometheus/recovery.yaml": recovery,
  "deploy/prometheus/audit.yaml": [audit],
};

export const ALERTS: readonly Alert[] = Object.values(FILES).flatMap((groups) => groups.flatMap(({ alerts }) => alerts));

const q = (value: string): string => JSON.stringify(value);
const annotations = ({ name, summary }: Alert) => ({ summary, runbook: `${RUNBOOKS}/${name}.md` });
const labelsOf = (alert: Alert) => ({ severity: alert.severity, ...(alert.default ? { default: "yes" } : {}) });
const lines = (indent: string, of: Readonly<Record<string, string>>) =>
  Object.entries(of)
    .map(([name, value]) => `${indent}${name}: ${q(value)}\n`)
    .join("");

const rule = (alert: Alert) =>
  `      - alert: ${alert.name}\n        expr: ${q(alert.expr)}\n        for: ${alert.for}\n        labels:\n${lines("          ", labelsOf(alert))}        annotations:\n${lines("          ", annotations(alert))}`;

export const rules = (groups: readonly Group[]): string =>
  `# Printed from deploy/alerts by npm run deploy:alerts.\ngroups:\n${groups.map(({ name, alerts }) => `  - name: ${name}\n    rules:\n${alerts.map(rule).join("")}`).join("")}`;

/** For `promtool test rules`: its own rule and its two cases. Cases that evaluated all rules took a minute instead of a second. */
export function casesOf(alert: Alert): { readonly rules: string; readonly cases: string } {
  const fires = { ...alert.fires, labels: { ...labelsOf(alert), ...alert.fires.labels } };
  const tests = [fires, { ...alert.quiet, labels: null }].map(({ series, labels, at = AT }) => ({
    interval: "1m",
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [
      {
        ...{ eval_time: at, alertname: alert.name },
        exp_alerts: labels === null ? [] : [{ exp_labels: labels, exp_annotations: annotations(alert) }],
      },
    ],
  }));
  const rule_files = [`${alert.name}.rules.yaml`];
  return {
    rules: rules([{ name: alert.name, alerts: [alert] }]),
    cases: JSON.stringify({ rule_files, evaluation_interval: "1m", tests }),
  };
}

/** What a severity asks of the person on call. */
const URGENCY: Readonly<Record<Alert["severity"], string>> = {
  critical: "act now, also at night",
  warning: "act today; at night only where it grows",
  info: "look when you have time; nobody needs to be woken",
};

export const runbook = ({ name, severity, summary, expr, for: held, means, look, act, over }: Alert): string =>
  `# ${name}\n\n${summary}.\n\n\`\`\`promql\n${expr}\n\`\`\`\n\nHeld for ${held} before it fires.\n\n**How bad.** ${severity[0]?.toUpperCase()}${severity.slice(1)}: ${URGENCY[severity]}. ${means}\n\n## Look\n\n${look}\n\n## Do\n\n${act}\n\n## Over when\n\n${over}\n`;

export const printedAlerts: Readonly<Record<string, () => string>> = {
  ...Object.fromEntries(Object.entries(FILES).map(([path, groups]) => [path, () => rules(groups)])),
  ...Object.fromEntries(ALERTS.map((alert) => [`${RUNBOOKS}/${alert.name}.md`, () => runbook(alert)])),
};
