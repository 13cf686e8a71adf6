/**
 * The seed's outbox store under its own names: `claim_batch`, `ack` and `nack`, bound to a worker and a namespace (OBX-11). Underneath
 * they are the kernel's claim and settle, each under the token that came with the claim: an answer that comes too late changes
 * nothing and is told `lost` (DO-3), and another namespace's messages are never taken (DO-8).
 */
import { reclaimExpired } from "../../maintenance/jobs/reclaim-expired.ts";
import { type DecideRules, decide } from "../../message/decide.ts";
import { MakegoodError } from "../../message/errors.ts";
import { LIMITS } from "../../message/limits.ts";
import type { ClaimedMessage } from "../../message/message.ts";
import type { Outcome } from "../../message/outcome.ts";
import { RETRY_POLICIES, type RetryPolicy, retryPolicy } from "../../message/retry-policy.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { createEvents } from "../../observe/events.ts";
import { systemRandom } from "../../platform/random.ts";
import type { SettleResult, Store } from "../../store/store.ts";

export interface OutboxStoreOptions {
  readonly store: Store;
  readonly workerId: string;
  readonly namespace: string;
}

export interface ClaimCfg {
  readonly batch_size: number;
  /** In milliseconds. How many attempts there are is the topic's retry policy and stands nowhere else (CON-41). */
  readonly lease_duration: number;
}

export interface OutboxMessage {
  readonly id: string;
  readonly namespace: string;
  readonly topic: string;
  readonly tenant_id: string | null;
  readonly dedupe_key: string | null;
  /** The exact text. */
  readonly payload: string;
  readonly attempts: number;
}

export interface OutboxStore {
  claim_batch(cfg: ClaimCfg): Promise<OutboxMessage[]>;
  ack(id: string): Promise<SettleResult>;
  nack(id: string, error: string): Promise<SettleResult>;
}

const ROUNDS_MAX = 4;
const FALLBACK: DecideRules = { policy: RETRY_POLICIES.get("usage") as RetryPolicy, ordering: "key", onUnknown: "retry" };

export function createOutboxStore({ store, workerId, namespace }: OutboxStoreOptions): OutboxStore {
  const held = new Map<string, { readonly message: ClaimedMessage; readonly rules: DecideRules }>();
  let topics = new Map<string, TopicRecord>();
  const rulesOf = (topic: string): DecideRules => rulesFor(topics.get(topic)) ?? FALLBACK;
  // CON-20: what a crashed worker held comes back also where no other worker of ours looks after it.
  const reclaim = reclaimExpired({ store, owner: workerId, random: systemRandom, events: createEvents(), rulesOf, everyMs: 0 });

  async function claimRound(wanted: number, cfg: ClaimCfg): Promise<ClaimedMessage[]> {
    const due = (await store.lanes()).filter(({ topic, dueInMs }) => dueInMs <= 0 && isOpen(topics.get(topic), namespace));
    const share = Math.max(1, Math.floor(wanted / Math.max(1, due.length)));
    // A suspect is claimed alone (docs/decisions/0003).
    const lanes = due.slice(0, wanted).map(({ lane, suspicion }) => ({ lane, limit: suspicion > 0 ? 1 : share }));
    return lanes.length === 0
      ? []
      : store.claim({ owner: workerId, leaseMs: cfg.lease_duration, lanes, bytesMax: LIMITS.claimBytesMax });
  }

  async function settle(id: string, outcome: Outcome): Promise<SettleResult> {
    const one = held.get(id);
    if (!one) return "lost";
    held.delete(id);
    const { claim, attempt } = one.message;
    const settlement = decide(one.message, outcome, one.rules, systemRandom.next());
    return (await store.settle([{ id, claim, attempt, durationMs: null, settlement }]))[0] as SettleResult;
  }

  return {
    async claim_batch(cfg) {
      check(cfg);
      topics = new Map((await store.topics.list()).map((record) => [record.name, record]));
      await reclaim.run(new AbortController().signal);
      const claimed: ClaimedMessage[] = [];
      for (let round = 0; round < ROUNDS_MAX && claimed.length < cfg.batch_size; round++) {
        const more = await claimRound(cfg.batch_size - claimed.length, cfg);
        if (more.length === 0) break;
        claimed.push(...more);
      }
      for (const message of claimed) held.set(message.id, { message, rules: rulesOf(message.topic) });
      return claimed.map(messageOf);
    },
    ack: (id) => settle(id, { kind: "delivered" }),
    nack: (id, error) => settle(id, { kind: "retry", code: "nack", error: error.slice(0, LIMITS.errorBytesMax / 4) }),
  };
}

function messageOf({ id, topic, tenantId, key, payload, attempt }: ClaimedMessage): OutboxMessage {
  const [namespace = "", name = ""] = topic.split("/");
  return { id, namespace, topic: name, tenant_id: tenantId, dedupe_key: key, payload, attempts: attempt };
}

/** What a person or a breaker holds back is held back here, too. */
function isOpen(record: TopicRecord | undefined, namespace: string): boolean {
  if (!record?.name.startsWith(`${namespace}/`)) return false;
  return !record.paused && record.disabledReason === null && record.breaker.state === "closed";
}

function rulesFor(record: TopicRecord | undefined): DecideRules | undefined {
  const policy = record && retryPolicy(record.retry);
  return policy && { policy, ordering: record.ordering, onUnknown: record.sink.onUnknown ?? "retry" };
}

function check({ batch_size: size, lease_duration: leaseMs }: ClaimCfg): void {
  const wrong = !(Number.isInteger(size) && size >= 1 && size <= LIMITS.batchMessagesMax)
    ? `batch_size must be from 1 to ${LIMITS.batchMessagesMax}`
    : !(leaseMs >= LIMITS.leaseMsMin && leaseMs <= LIMITS.leaseMsMax)
      ? `lease_duration must be from ${LIMITS.leaseMsMin} to ${LIMITS.leaseMsMax} ms`
      : null;
  if (wrong) throw new MakegoodError("invalid_config", wrong);
}
