/** The audit four (AUD-29, CON-18), on the metrics that this program declares. */
import { type Alert, alert, type Group } from "./alert.ts";

const LOOK =
  "`makegood topics list`, `makegood messages list --topic audit/executions --status dead`, and `/health` of the server.";
const pending = (name: string, severity: Alert["severity"], above: number): Alert =>
  alert(name, severity, "5m", `max(makegood_audit_pending) > ${above}`, {
    summary: `More than ${above} audit records wait to be stored`,
    means: "Records are kept and not yet in the audit tables: the database refuses them or is slow, or no worker serves audit/*.",
    look: LOOK,
    act: "Mend the database or start a worker (`makegood work --topics audit/*`). Nothing is dropped meanwhile.",
    over: "makegood_audit_pending falls and stays below the threshold.",
  });
const failing = (each: number) => ({
  series: { 'makegood_audit_write_failures_total{audit_type="executions"}': `0+${each}x120` },
});

const alerts: readonly Alert[] = [
  pending("AuditDLQHigh", "warning", 5_000),
  pending("AuditDLQCritical", "critical", 9_000),
  alert("AuditWriteFailureSpike", "critical", "0m", "sum(increase(makegood_audit_write_failures_total[1m])) > 100", {
    summary: "More than 100 audit writes in a minute were not stored at once",
    means: "Producers or the endpoint cannot write; records go to the queue, or were refused as invalid.",
    look: "`makegood_audit_write_attempts_total` by result says which; validation_error is a producer's mistake, fallback a store's.",
    act: "For fallback treat it as an outage of the store; for validation_error find the producer by its audit_type.",
    over: "The rate is below 100 a minute.",
    fires: failing(200),
    quiet: failing(50),
  }),
  alert("AuditPermanentFailures", "critical", "0m", "max(makegood_audit_dead_letters) > 0", {
    summary: "An audit record became a dead letter",
    means: "A record was refused for good. It is kept with its whole text and its reason until a person decides.",
    look: LOOK,
    act: "Mend what refused it, then `makegood messages replay <id> --reason '…'`.",
    over: "No open audit dead letter is left.",
  }),
];

export const audit: Group = { name: "audit", alerts };
