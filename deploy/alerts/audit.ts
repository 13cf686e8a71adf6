/** The audit four (AUD-29, CON-18), on the metrics that this program declares. Their pages are followed by a test (AUD-35). */
import type { Alert, Group } from "./alert.ts";

const FENCE = "```";
const shell = (text: string): string => `${FENCE}sh\n${text.trim()}\n${FENCE}`;

const FULLEST = `TOPIC=$(makegood messages list --all --status pending --limit 1000 | awk '$2 ~ /^audit/ { print $2 }' | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')`;

const pending = (name: string, severity: Alert["severity"], above: number, value: number, bad: string): Alert => ({
  ...{ name, severity, for: "5m", expr: `max(makegood_audit_pending) > ${above}` },
  summary: `More than ${above} audit records wait to be stored`,
  means: `Records were accepted and are kept, and are not yet in the audit tables. Nothing is dropped at any number. ${bad}`,
  look: `Which type waits, and why its oldest record does: \`pending_reason\` and the last attempt say it.

${shell(`
${FULLEST}
makegood topics show "$TOPIC"
makegood messages list --topic "$TOPIC" --status pending --limit 5
ID=$(makegood messages list --topic "$TOPIC" --status pending --limit 1 | awk 'NR == 2 { print $1 }')
makegood messages show "$ID"
makegood doctor || true
`)}`,
  act: `- \`paused\`: a person paused the topic. Ask why, then resume it.
- \`no_worker\`: start one, \`makegood work --topics 'audit/*'\`, or \`serve\`.
- \`store_unavailable\`, \`store_full\`, \`schema_outdated\`: the audit database. See [PostgreSQL lost](../postgres-lost.md), [disk full](../disk-full.md), [migration](../migration.md).
- \`sql_42501\` or \`sql_28…\`: a right was taken away. Give it back.
- Nothing of it, and the number falls: it is being worked off, 20 a second for each type, so that requests are not disturbed.

${shell(`
systemctl start postgresql
makegood topics resume "$TOPIC"
`)}`,
  over: `The number falls, and stays below ${above}.

${shell(`curl -s "$MAKEGOOD_URL/metrics" | grep '^makegood_audit_pending'`)}`,
  fires: { series: { makegood_audit_pending: `${value}x120` } },
  quiet: { series: { makegood_audit_pending: `${above}x120` } },
});

const LIST_OPEN = `open_ones() {
  for TOPIC in $(makegood topics list --all | awk '/^audit/ { print $1 }'); do
    makegood messages list --topic "$TOPIC" --status dead --resolution open --limit 1000 | awk 'NR > 1 { print $1 }'
  done
}`;

const alerts: readonly Alert[] = [
  pending(
    "AuditDLQHigh",
    "warning",
    5_000,
    5_001,
    "Readers of the audit trail do not see them yet; look at the health of the database and of the workers before it becomes critical.",
  ),
  pending(
    "AuditDLQCritical",
    "critical",
    9_000,
    9_001,
    "The seeds' limit is 10,000: producers of theirs that keep their own queue begin to lose records there.",
  ),
  {
    ...{ name: "AuditWriteFailureSpike", severity: "critical", for: "0m" },
    expr: "sum(increase(makegood_audit_write_failures_total[1m])) > 100",
    summary: "More than 100 audit writes in a minute were not stored at once",
    means:
      "`fallback`: the record is kept and waits, nothing is lost. `validation_error`: it did not fit and is kept as a dead letter. `failed`: it was answered with 503 and only the producer has it; that one is urgent.",
    look: `Which of the three it is, and of which type:

${shell(`
curl -s "$MAKEGOOD_URL/metrics" | grep '^makegood_audit_write_attempts_total'
makegood doctor || true
curl -s "$MAKEGOOD_URL/health" | head -c 600
`)}`,
    act: `- \`fallback\` and \`failed\`: an outage of the audit database. Bring it back ([PostgreSQL lost](../postgres-lost.md), [disk full](../disk-full.md)); producers send again what was answered with 503, what waits is stored by itself.
- \`validation_error\`: a producer of that type was changed. \`makegood messages list --topic audit/quarantine --status dead --resolution open\` has the records with what is wrong with them; roll that producer back.

${shell("systemctl start postgresql")}`,
    over: `A minute later fewer than 100 were added, and a record is stored at once again.

${shell(`
for i in $(seq 60); do makegood doctor > doctor.txt && break; sleep 0.5; done
curl -s "$MAKEGOOD_URL/metrics" | grep '^makegood_audit_write_failures_total'
`)}`,
    fires: { series: { 'makegood_audit_write_failures_total{audit_type="executions"}': "0+200x120" } },
    quiet: { series: { 'makegood_audit_write_failures_total{audit_type="executions"}': "0+50x120" } },
  },
  {
    ...{ name: "AuditPermanentFailures", severity: "critical", for: "0m", expr: "max(makegood_audit_dead_letters) > 0" },
    summary: "An audit record became a dead letter",
    means:
      "It was refused for good, and is missing in the audit trail until a person decides. It is kept with its whole text and its reason; retention does not take it.",
    look: `Each with what the database or the check said of it:

${shell(`
${LIST_OPEN}
for ID in $(open_ones); do makegood messages show "$ID"; done
`)}`,
    act: `- \`invalid_record\`: it does not fit its type. Compare it with the producer; a type that has become wider takes it by a replay.
- \`event_conflict\`: another record has its event id. Keep the right one: resolve this one with what you found as the reason, or send it again under an id of its own.
- \`sql_22…\`, \`sql_23…\`: the database refuses its content. Find the constraint that was added, take it away, replay.
- Too many attempts: the database is back. Replay.

${shell(`for ID in $(open_ones); do makegood messages replay "$ID" --reason "the audit database takes it again"; done`)}`,
    over: `No open audit dead letter is left, also a minute later.

${shell(`
for i in $(seq 60); do [ -z "$(open_ones)" ] && break; sleep 0.5; done
open_ones
`)}`,
    fires: { series: { makegood_audit_dead_letters: "1x120" } },
    quiet: { series: { makegood_audit_dead_letters: "0x120" } },
  },
];

export const audit: Group = { name: "audit", alerts };
