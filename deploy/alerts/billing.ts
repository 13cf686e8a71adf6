/** Settlement (EV-9): what is owed and was not charged. */
import { alert, type Group } from "./alert.ts";

export const billing: Group = {
  name: "makegood_billing",
  alerts: [
    alert(
      "MakegoodBillingDeadLetterOld",
      "critical",
      "5m",
      'max(makegood_oldest_dead_letter_seconds{topic="billing/finalize"}) > 86400',
      {
        summary: "An open billing dead letter is older than a day",
        means:
          "A settlement was refused for good and nobody has decided on it for a day: money is owed and not charged, or charged and not owed.",
        look: "`makegood messages list --topic billing/finalize --status dead --resolution open`, the oldest at its end; `makegood messages show <id>` has its attempts and the payload with reservation and amount.",
        act: "Look at the provider whether it was charged: an attempt may have had its effect without an answer. It was: `makegood messages resolve <id> --reason '…'`. It was not, and the cause is mended: `makegood messages replay <id> --reason '…'`, under the same key, so that it is charged once. It must not be: `makegood messages discard <id> --reason '…'`.",
        over: "No open dead letter of billing/finalize is older than a day; makegood_oldest_dead_letter_seconds of the topic is gone or below 86400.",
      },
    ),
    alert("MakegoodBillingNotReady", "critical", "5m", "min(makegood_billing_ready) == 0", {
      summary: "What goes wrong in settlement now might not be kept",
      means:
        "The store of settlement is not durable, was not verified to be, or holds reservations that cannot be read: what goes wrong now might not be kept, and money would be lost silently.",
      look: "`billing` in `/health` says which; with Redis `makegood check-redis --strict`, and `makegood doctor --profile shadow` holds all that settlement asks for.",
      act: "Not durable: make it so (`deploy/redis/redis-durable.conf`, see [Redis lost](../redis-lost.md)). Not verified: Redis refuses CONFIG; vouch for it by MAKEGOOD_REDIS_ATTEST only if you know. Unreadable reservations: `/health` names them; find what was owed in the provider's records.",
      over: "makegood_billing_ready is 1, and `makegood doctor --profile shadow` ends with 0.",
    }),
  ],
};
