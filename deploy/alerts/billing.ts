/** Settlement (EV-9): what is owed and was not charged. */
import { type Alert, alert, type Group } from "./alert.ts";

const OLDEST = 'max(makegood_oldest_dead_letter_seconds{topic="billing/finalize"})';

const alerts: readonly Alert[] = [
  alert("MakegoodBillingDeadLetterOld", "critical", "5m", `${OLDEST} > 86400`, {
    summary: "An open billing dead letter is older than a day",
    means:
      "A settlement was refused for good and nobody has decided on it for a day: money is owed and not charged, or charged and not owed.",
    look: "`makegood messages list --topic billing/finalize --status dead`, then `makegood messages show <id>` for its attempts.",
    act: "Settle it by hand at the provider and `makegood messages resolve <id> --reason '…'`, or mend the cause and `makegood messages replay <id> --reason '…'`.",
    over: "makegood_oldest_dead_letter_seconds of the topic is gone or below a day.",
  }),
  alert("MakegoodBillingNotReady", "critical", "5m", "min(makegood_billing_ready) == 0", {
    summary: "What goes wrong in settlement now might not be kept",
    means: "The store of settlement is not durable, was not verified to be, or holds reservations that cannot be read.",
    look: "`billing` in `/health`; with Redis `makegood check-redis --strict`.",
    act: "Make the store durable (`deploy/` has a Redis configuration), or mend what it says is unreadable.",
    over: "makegood_billing_ready is 1.",
  }),
];

export const billing: Group = { name: "makegood_billing", alerts };
