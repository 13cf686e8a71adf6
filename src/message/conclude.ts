/**
 * Where every attempt ends, in any process and on any store: from a claim and an outcome to the one write that follows from
 * them. The only caller of decide().
 */
import { type Decided, type DecideRules, decide } from "./decide.ts";
import { LIMITS } from "./limits.ts";
import type { ClaimedMessage } from "./message.ts";
import type { Outcome } from "./outcome.ts";
import { RETRY_POLICIES, type RetryPolicy, retryPolicy } from "./retry-policy.ts";
import type { Settle, Settlement } from "./settlement.ts";
import type { TopicDefinition } from "./topic.ts";

/** What is needed of a claimed message to end its attempt. */
export type Attempted = Decided & Pick<ClaimedMessage, "id" | "claim">;

/** For a topic that nobody here knows (any more): what happens to its messages is bounded, too. */
export const DEFAULT_RULES: DecideRules = {
  policy: RETRY_POLICIES.get("exponential") as RetryPolicy,
  ordering: "key",
  onUnknown: "retry",
};

/** As the topic itself says; undefined: there is none, or a newer version stored it with a policy that nobody here knows. */
export function topicRules(topic: TopicDefinition | undefined): DecideRules | undefined {
  const policy = topic && retryPolicy(topic.retry);
  return policy && { policy, ordering: topic.ordering, onUnknown: topic.sink.onUnknown ?? "retry" };
}

/** `random` is in [0, 1). `durationMs`: how long the attempt took; null: nobody knows. */
export function conclude(
  claimed: Attempted,
  outcome: Outcome,
  rules: DecideRules = DEFAULT_RULES,
  random = 0,
  durationMs: number | null = null,
): Settle {
  return settleOf(claimed, writable(decide(claimed, outcome, rules, random)), durationMs);
}

/** As if it had not been claimed. */
export const released = (claimed: Attempted): Settle => settleOf(claimed, RELEASE, null);

const RELEASE: Settlement = Object.freeze({ kind: "release" });

function settleOf({ id, claim, attempt }: Attempted, settlement: Settlement, durationMs: number | null): Settle {
  return { id, claim, attempt, durationMs: durationMs === null ? null : Math.round(durationMs), settlement };
}

// PostgreSQL has no NUL in a text, and an error may quote anything a receiver said.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g;

/** Error texts, cut to their limit and without what a store cannot keep. */
function writable(settlement: Settlement): Settlement {
  if (settlement.kind === "delivered" || settlement.kind === "release" || settlement.error === null) return settlement;
  const error = settlement.error.slice(0, LIMITS.errorBytesMax).replace(UNWRITABLE, "\ufffd");
  const bytes = Buffer.from(error);
  const fits = bytes.length <= LIMITS.errorBytesMax;
  return { ...settlement, error: fits ? bytes.toString() : bytes.subarray(0, LIMITS.errorBytesMax - 3).toString() };
}
