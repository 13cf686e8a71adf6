/** Which files are printed from code, and by what. */
import { printedAlerts } from "./alerts/all.ts";
import { printedDashboards } from "./grafana/all.ts";
import { metricsPage } from "./metrics-page.ts";

export const PRINTED: Readonly<Record<string, () => string>> = {
  "docs/reference/metrics.md": metricsPage,
  ...printedAlerts,
  ...printedDashboards,
};
