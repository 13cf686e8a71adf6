/**
 * The seed's outbox store under its own names: `claim_batch`, `ack` and `nack`, bound to a worker and a namespace. Underneath
 * they are the kernel's claim and settle, each under the token that came with the claim: an answer that comes too late changes
 * nothing and gets `lost`, and another namespace's messages are never taken.
 */
import { reclaimExpired } from "../../maintenance/jobs/reclaim-expired.ts";
import { conclude, topicRules } from "../../message/conclude.ts";
import type { DecideRules } from "../../message/decide.ts";
import { LIMITS } from "../../message/limits.ts";
import type { ClaimedMessage } from "../../message/message.ts";
import type { Outcome } from "../../message/outcome.ts";
import type { Settle } from "../../message/settlement.ts";
import type { TopicRecord } from "../../message/topic.ts";
import { checkSetting } from "../../message/validate.ts";
import { topicHold } from "../../message/worker-note.ts";
import { createEvents } from "../../observe/events.ts";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { USUAL_TURN } from "../../platform/job.ts";
import { systemRandom } from "../../platform/random.ts";
import type { SettleResult, Store } from "../../store/store.ts";

export interface OutboxStoreOptions {
  readonly store: Store;
  readonly workerId: string;
  readonly namespace: string;
  readonly clock?: Clock | undefined;
}

export interface ClaimCfg {
  readonly batch_size: number;
  /** In milliseconds. How many attempts there are is the topic's retry policy and stands nowhere else. */
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

/** A claim that has not been answered yet. */
interface Held {
  readonly message: ClaimedMessage;
  readonly rules: DecideRules | undefined;
  /** Monotonic; by then the lease is over by the store's clock, too. */
  readonly untilMs: number;
  /** Answers of one claim go one after the other. */
  answer: Promise<unknown>;
  /** A settle failed: it may have been written all the same. */
  doubtful: boolean;
}

export function createOutboxStore({ store, workerId, namespace, clock = systemClock }: OutboxStoreOptions): OutboxStore {
  const held = new Map<string, Held>();
  let topics = new Map<string, TopicRecord>();
  const rulesOf = (topic: string) => topicRules(topics.get(topic));
  /** What a person or a breaker holds back is held back here, too. */
  const isOpen = (topic: string, record = topics.get(topic)): boolean =>
    topic.startsWith(`${namespace}/`) && record !== undefined && topicHold(record) === null;
  // CON-20: what a crashed worker held comes back also where no other worker of ours looks after it.
  const reclaim = reclaimExpired({ store, owner: workerId, random: systemRandom, events: createEvents(), rulesOf, everyMs: 0 });

  async function claimRound(wanted: number, cfg: ClaimCfg): Promise<ClaimedMessage[]> {
    const due = (await store.lanes()).filter(({ topic, dueInMs }) => dueInMs <= 0 && isOpen(topic));
    if (due.length === 0) return [];
    const share = Math.max(1, Math.floor(wanted / due.length));
    // Whose first message waits longest goes first, so that every lane is served. A suspect is claimed alone
    // (docs/decisions/0003).
    const oldestFirst = due.sort((a, b) => a.dueInMs - b.dueInMs).slice(0, wanted);
    const lanes = oldestFirst.map(({ lane, suspicion }) => ({ lane, limit: suspicion > 0 ? 1 : share }));
    return store.claim({ owner: workerId, leaseMs: cfg.lease_duration, lanes, bytesMax: LIMITS.claimBytesMax });
  }

  /** The claim is kept until the store has answered: what failed may be answered again for as long as the lease lives. */
  function settle(id: string, outcome: Outcome): Promise<SettleResult> {
    const one = held.get(id);
    if (!one) return Promise.resolve("lost");
    const answer = one.answer.then(() => settleHeld(one, outcome));
    one.answer = answer.catch(() => {});
    return answer;
  }

  async function settleHeld(one: Held, outcome: Outcome): Promise<SettleResult> {
    const { id } = one.message;
    // After its lease a message belongs to the next worker that claims it.
    forgetEnded();
    if (held.get(id) !== one) return "lost";
    const settle = conclude(one.message, outcome, one.rules, systemRandom.next());
    const [result = "lost"] = await store.settle([settle]).catch((error: unknown) => {
      one.doubtful = true;
      throw error;
    });
    const ours = result === "lost" && one.doubtful && (await isWritten(settle));
    if (held.get(id) === one) held.delete(id);
    return ours ? "settled" : result;
  }

  /** Whether an earlier try of the same answer was written, and only its own answer was lost. */
  async function isWritten({ id, attempt, settlement }: Settle): Promise<boolean> {
    const row = (await store.history(id)).attempts.filter((one) => one.attempt === attempt).at(-1);
    return settlement.kind !== "release" && row?.outcome === settlement.outcome;
  }

  function forgetEnded(): void {
    const nowMs = clock.monotonicMs();
    for (const [id, { untilMs }] of held) if (untilMs <= nowMs) held.delete(id);
  }

  return {
    async claim_batch(cfg) {
      checkSetting("batch_size", cfg.batch_size, 1, LIMITS.batchMessagesMax);
      checkSetting("lease_duration, in milliseconds,", cfg.lease_duration, LIMITS.leaseMsMin, LIMITS.leaseMsMax, false);
      forgetEnded();
      topics = new Map((await store.topics.list()).map((record) => [record.name, record]));
      await reclaim.run(new AbortController().signal, USUAL_TURN);
      const claimed: ClaimedMessage[] = [];
      for (let round = 0; round < ROUNDS_MAX && claimed.length < cfg.batch_size; round++) {
        const more = await claimRound(cfg.batch_size - claimed.length, cfg).catch((error: unknown) => {
          // What was claimed before it is the caller's all the same.
          if (claimed.length === 0) throw error;
          return [];
        });
        if (more.length === 0) break;
        claimed.push(...more);
      }
      const fresh = { untilMs: clock.monotonicMs() + cfg.lease_duration, answer: Promise.resolve(), doubtful: false };
      for (const message of claimed) held.set(message.id, { ...fresh, message, rules: rulesOf(message.topic) });
      return claimed.map(messageOf);
    },
    ack: (id) => settle(id, { kind: "delivered" }),
    nack: (id, error) => settle(id, { kind: "retry", code: "nack", error }),
  };
}

function messageOf({ id, topic, tenantId, key, payload, attempt }: ClaimedMessage): OutboxMessage {
  const [namespace = "", name = ""] = topic.split("/");
  return { id, namespace, topic: name, tenant_id: tenantId, dedupe_key: key, payload, attempts: attempt };
}
