/**
 * One pass over the entries of the seeds' port that are due: claim, send, decide, write, each entry by itself, so that one
 * that fails in any way takes no other with it (DF-21). Whoever has no claim changes nothing; the decision is the kernel's.
 */
import { type DecideRules, decide } from "../../message/decide.ts";
import { errorText } from "../../message/errors.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { Settlement } from "../../message/settlement.ts";
import type { Random } from "../../platform/random.ts";
import type { DLQClaim, DLQStore } from "../../store/redis/dlq-port/dlq-store.ts";
import type { Gate } from "./gate.ts";
import type { Lines } from "./lines.ts";
import { NO_REPLAYS, type ReplayCounts } from "./outcome.ts";
import { readRequest } from "./request.ts";
import type { Transport } from "./transport.ts";

export interface PassDeps {
  readonly store: DLQStore;
  readonly transport: Transport;
  readonly gate: Gate;
  readonly rules: DecideRules;
  readonly leaseMs: number;
  readonly random: Random;
  readonly lines: Lines;
}

/** How many entries of a pass are under way at once (EV-9). */
const AT_ONCE = 5;

type Counted = Exclude<keyof ReplayCounts, "replayed">;

/** Throws only when the store cannot say what is due. */
export async function replayPass(deps: PassDeps): Promise<ReplayCounts> {
  const counts = { ...NO_REPLAYS };
  const ready = (await deps.store.getReady()).map(({ reservation_id }) => reservation_id);
  const next = async (): Promise<void> => {
    for (let id = ready.shift(); id !== undefined && deps.gate.enter(); id = ready.shift()) {
      const became = await replayOne(id, deps);
      if (became === null) continue;
      counts.replayed++;
      counts[became]++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return counts;
}

/** Null: it was not ours to replay. Leaves the gate in every path. */
async function replayOne(id: string, deps: PassDeps): Promise<Counted | null> {
  const { store, gate, leaseMs, lines } = deps;
  let outcome: Outcome = UNTRIED;
  let claim: DLQClaim | null = null;
  try {
    claim = await store.claimForReplay(id, leaseMs);
    if (claim === null) return null;
    const { request, problem } = readRequest(claim.entry, () => id);
    if (problem !== null || isExhausted(claim, deps.rules)) {
      const error = problem ?? "its attempts had ended before";
      return await write(claim, { kind: "reject", code: "not_replayable", error }, deps);
    }
    outcome = (await deps.transport.send(request)).outcome;
    lines.alert(id, outcome);
    return await write(claim, outcome, deps);
  } catch (error) {
    lines.storeFailed("replay", `${id}: ${errorText(error)}`);
    // A call that went out counts; the entry is still there and the receiver knows its key.
    return outcome === UNTRIED ? null : "failed";
  } finally {
    gate.leave(outcome);
    // FIN-33. After a delete or a drop there is nothing left to release, and a lost claim is not ours to release.
    if (claim !== null) await store.releaseClaim(id, claim.token).catch(() => false);
  }
}

/** Nothing was sent: it says nothing about the receiver, neither good nor bad. */
const UNTRIED: Outcome = Object.freeze({ kind: "interrupted" });

async function write(claim: DLQClaim, outcome: Outcome, deps: PassDeps): Promise<Counted> {
  const { store, rules, random, lines } = deps;
  const { token, entry } = claim;
  const id = entry.reservation_id;
  const settlement = decide(position(claim), outcome, rules, random.next());
  switch (settlement.kind) {
    case "delivered":
      if (!(await store.delete(id, token))) lines.claimLost(id);
      return "succeeded";
    case "dead": {
      const reason = reasonOf(settlement);
      if (await store.terminalDrop(id, token, reason)) {
        lines.terminal({ ...entry, reason }, entry.attempt_count + 1, store.kind);
        return "terminal";
      }
      lines.claimLost(id);
      return "failed";
    }
    case "retry":
      if ((await store.incrementAttempt(id, token, { delayMs: settlement.delayMs })) === null) lines.claimLost(id);
      return "failed";
    default:
      return "failed";
  }
}

/** The direct try was attempt 0 of the kernel and 1 of the seeds (FIN-37): the count of an entry is the number of its next replay (DF-15). */
function position({ entry }: DLQClaim): Parameters<typeof decide>[0] {
  return { attempt: entry.attempt_count, base: 0, handedDown: true, suspicion: 0 };
}

/** Also a replay that kills its process again and again comes to an end: lost claims are counted apart (CON-27). */
function isExhausted({ entry, abandoned }: DLQClaim, { policy }: DecideRules): boolean {
  return entry.attempt_count > policy.attemptsMax || abandoned >= policy.attemptsMax;
}

export function reasonOf(settlement: Extract<Settlement, { kind: "dead" | "retry" | "hold" }>): string {
  return `${settlement.code ?? settlement.outcome}: ${settlement.error ?? "no reason given"}`;
}
