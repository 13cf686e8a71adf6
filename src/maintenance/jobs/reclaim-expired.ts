/**
 * Finds leases that ran out (a crash, a stall, a cut network) and decides what becomes of what was in them. The store takes them
 * over under new tokens first, so the worker that held them can no longer settle (I4); that also makes two of these at once safe.
 */
import { conclude } from "../../message/conclude.ts";
import type { DecideRules } from "../../message/decide.ts";
import type { ClaimedMessage } from "../../message/message.ts";
import type { Settle } from "../../message/settlement.ts";
import type { Events } from "../../observe/events.ts";
import type { MaintenanceJob, Ran } from "../../platform/job.ts";
import type { Random } from "../../platform/random.ts";
import type { Store } from "../../store/store.ts";

export interface ReclaimOptions {
  readonly store: Pick<Store, "reclaim" | "settle">;
  readonly owner: string;
  readonly random: Random;
  readonly events: Events;
  /** A promise where the store has to be asked; undefined: there is no such topic. */
  readonly rulesOf: (topic: string) => DecideRules | undefined | Promise<DecideRules | undefined>;
  readonly everyMs: number;
}

const BATCH = 500;
/** Leases that a dry run looks at. */
const REHEARSED_MAX = 100_000;
/** How long a takeover has to settle what it took: if it dies as well, or its answer is lost, the next one follows. */
const TAKEOVER_MS = 10_000;

export function reclaimExpired({ store, owner, random, events, rulesOf, everyMs }: ReclaimOptions): MaintenanceJob {
  /** By their own topics' rules: a process that has just started may not know them yet, and others would charge too little or too much (I6). */
  async function settlesOf(messages: readonly ClaimedMessage[]): Promise<Settle[]> {
    const rules = new Map<string, DecideRules | undefined>();
    for (const { topic } of messages) if (!rules.has(topic)) rules.set(topic, await rulesOf(topic));
    return messages.map((message) => conclude(message, { kind: "lost" }, rules.get(message.topic), random.next()));
  }

  return {
    name: "reclaim-expired",
    about: "takes back messages whose worker died or lost its lease",
    rehearses: true,
    everyMs,
    where: "each",
    async run(signal, { dryRun, batchSize }): Promise<Ran> {
      const limit = batchSize ?? BATCH;
      const request = { owner, leaseMs: TAKEOVER_MS, limit };
      if (dryRun)
        return { counts: { would_reclaim: (await store.reclaim({ ...request, limit: REHEARSED_MAX, dryRun })).length } };
      for (let reclaimed = 0; ; ) {
        const messages = await store.reclaim(request);
        if (messages.length === 0) return { counts: { reclaimed } };
        const settles = await settlesOf(messages);
        const results = await store.settle(settles);
        const count = results.filter((result) => result === "settled").length;
        reclaimed += count;
        events.emit({ type: "reclaimed", count });
        for (const [i, message] of messages.entries()) announce(events, message, settles[i] as Settle, results[i]);
        if (signal.aborted || messages.length < limit) return { counts: { reclaimed } };
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
