/**
 * What an attempt's end must look like, told by other means than the code that decides it: which settlement each answer of a receiver calls
 * for, how long the wait is, and what is charged (I5, I6, I10).
 */
import { LIMITS } from "../../src/message/limits.ts";
import type { Settlement } from "../../src/message/settlement.ts";
import type { Entry, TopicLedger } from "./ledger.ts";

/** The settlement of a failure. */
type Failure = Exclude<Settlement, { kind: "delivered" | "release" }>;

export interface Wrong {
  readonly invariant: string;
  readonly text: string;
}

/** Where a receiver asks for a wait it says so in its error, too: the text passes through everything. */
export const asks = (ms: number): string => `simulated: not before ${ms} ms`;

/** What a stand-in for a probe waits, whatever its policy says. */
const STAND_IN_MS = 4_000;

/** Which outcome each code stands for. Whatever a process lacks itself leaves no row at all and is not here. */
const OUTCOMES: Readonly<Record<string, string>> = {
  http_422: "reject",
  http_500: "retry",
  http_429: "retry",
  handler_error: "retry",
  invalid_outcome: "retry",
  connection_failed: "retry",
  http_410: "retry",
  timeout: "unknown",
  lease_lost: "lost",
  shutdown: "interrupted",
  // Of attempts that were made below the stores.
  attempts_spent: "reject",
  process_lost: "lost",
  move_interrupted: "interrupted",
};

/** What is wrong with how an attempt ended; null: nothing is. `below`: it may have been made, and judged, before the store had it. */
export function wrongDecision(entry: Entry, settlement: Failure, topic: TopicLedger, below: boolean): Wrong | null {
  const { kind, code, error, outcome } = settlement;
  const wrong = (invariant: string, text: string): Wrong => ({ invariant, text });
  if (code === null || error === null) return wrong("I5", "failed without a reason");
  if (Buffer.byteLength(error) > LIMITS.errorBytesMax || error.includes("\0"))
    return wrong("I10", `failed with an error of ${Buffer.byteLength(error)} bytes that no store has to take`);
  const expected = OUTCOMES[code];
  if (expected === undefined) return wrong("I6", `failed as ${code}, which is no failure of a message`);
  if (outcome !== expected) return wrong("I5", `failed as ${code} and is told as ${outcome}`);
  if ((outcome === "reject") !== (kind === "dead" && outcome === "reject")) return wrong("I6", "was rejected and goes on");
  const holds = outcome === "unknown" && topic.definition.sink.onUnknown === "hold";
  if (holds !== (kind === "hold")) return wrong("I6", holds ? "may have taken effect and is not held" : "is held for no reason");
  if (below) return null;
  if (kind === "dead") return wrongDeath(entry, settlement, topic);
  return kind === "retry" ? wrongRetry(entry, settlement, topic) : null;
}

const spentBy = ({ attempts, base }: Entry): number => attempts - base;

function wrongDeath(
  entry: Entry,
  { outcome, blocksOrder }: Extract<Failure, { kind: "dead" }>,
  topic: TopicLedger,
): Wrong | null {
  const spent = spentBy(entry);
  if (outcome !== "reject" && spent < topic.attemptsLeast)
    return { invariant: "I6", text: `died after ${spent} attempts of ${topic.attemptsLeast}` };
  const strict = topic.definition.ordering === "strict";
  return blocksOrder === strict
    ? null
    : { invariant: "order", text: `died and ${strict ? "left its key open" : "closed its key"}` };
}

function wrongRetry(entry: Entry, settlement: Extract<Failure, { kind: "retry" }>, topic: TopicLedger): Wrong | null {
  const { outcome, code, counted, retried } = settlement;
  const wrong = (text: string): Wrong => ({ invariant: "I6", text });
  if (counted && spentBy(entry) >= topic.attemptsMost) return wrong(`goes on after ${spentBy(entry)} attempts`);
  if (outcome === "interrupted" || code === "http_410") return counted ? wrong(`was ${outcome} and is charged`) : null;
  if (outcome === "lost" && counted !== (entry.suspicion === 2))
    return wrong(`was lost and is ${counted ? "charged" : "not charged"}`);
  if (outcome !== "lost" && counted && entry.spared)
    return wrong("was only tried to see whether its receiver is back, and is charged");
  if (outcome !== "lost" && retried !== true) return { invariant: "I11", text: "failed and waits among those that never did" };
  return wrongWait(entry, settlement, topic);
}

function wrongWait(entry: Entry, settlement: Extract<Failure, { kind: "retry" }>, topic: TopicLedger): Wrong | null {
  const { outcome, counted, delayMs, error } = settlement;
  const asked = Number(/not before (\d+) ms/.exec(error ?? "")?.[1] ?? 0);
  const { baseMs = 0, maxMs = 0 } = topic.definition.retry;
  const step = spentBy(entry) + (counted && entry.message.directTry ? 1 : 0);
  const whole = Math.min(maxMs, baseMs * 2 ** Math.max(0, step - 1));
  const [least, most] =
    outcome === "lost" && !counted
      ? [0, 0]
      : counted
        ? [Math.max(asked, whole / 2), Math.max(asked, whole)]
        : [Math.max(asked, Math.min(baseMs, maxMs) / 2), Math.max(asked, whole, STAND_IN_MS)];
  if (delayMs >= Math.floor(least) && delayMs <= Math.ceil(most)) return null;
  return { invariant: "I6", text: `waits ${delayMs} ms after ${spentBy(entry)} attempts, not ${least} to ${most}` };
}
