/**
 * Finds leases that ran out (a crash, a stall, a cut network) and decides what becomes of what was in them. The store takes
 * them over under new tokens first, so whoever held them can no longer settle (I4); that also makes two of these at once safe.
 */
import { conclude } from "../../message/conclude.ts";
import type { DecideRules } from "../../message/decide.ts";
import type { ClaimedMessage } from "../../message/message.ts";
import type { Settle } from "../../message/settlement.ts";
import type { Events } from "../../observe/events.ts";
import type { Random } from "../../platform/random.ts";
import type { Store } from "../../store/store.ts";
import type { MaintenanceJob } from "../job.ts";

export interface ReclaimOptions {
  readonly store: Pick<Store, "reclaim" | "settle">;
  readonly owner: string;
  readonly random: Random;
  readonly events: Events;
  readonly rulesOf: (topic: string) => DecideRules | undefined;
  readonly everyMs: number;
}

const BATCH = 500;
/** How long a takeover has to settle what it took: should it die as well, or not hear that it took it, the next one follows. */
const TAKEOVER_MS = 10_000;

export function reclaimExpired({ store, owner, random, events, rulesOf, everyMs }: ReclaimOptions): MaintenanceJob {
  const settleOf = (message: ClaimedMessage): Settle =>
    conclude(message, { kind: "lost" }, rulesOf(message.topic), random.next());

  return {
    name: "reclaim-expired",
    everyMs,
    where: "each",
    async run(signal) {
      for (;;) {
        const messages = await store.reclaim({ owner, leaseMs: TAKEOVER_MS, limit: BATCH });
        if (messages.length === 0) return;
        const settles = messages.map(settleOf);
        const results = await store.settle(settles);
        events.emit({ type: "reclaimed", count: results.filter((result) => result === "settled").length });
        for (const [i, message] of messages.entries()) announce(events, message, settles[i] as Settle, results[i]);
        if (signal.aborted || messages.length < BATCH) return;
      }
    },
  };
}

function announce(events: Events, message: ClaimedMessage, { settlement }: Settle, result: string | undefined): void {
  const { topic, id, attempt } = message;
  if (result !== "settled" || (settlement.kind !== "retry" && settlement.kind !== "dead")) return;
  const status = settlement.kind === "dead" ? "dead" : "pending";
  const { code, error } = settlement;
  events.emit({ type: "attempt", topic, id, attempt, outcome: "lost", status, ms: 0, code, error, alert: false });
}
