/** The dashboards, as files that Grafana is provisioned with. */
import { type Described, print } from "./dashboard.ts";
import { m10Recovery } from "./m10-recovery.ts";
import { makegood } from "./makegood.ts";

export const DASHBOARDS: Readonly<Record<string, Described>> = {
  "deploy/grafana/makegood.json": makegood,
  "deploy/grafana/m10-recovery.json": m10Recovery,
};

export const printedDashboards: Readonly<Record<string, () => string>> = Object.fromEntries(
  Object.entries(DASHBOARDS).map(([path, dashboard]) => [path, () => print(dashboard)]),
);
