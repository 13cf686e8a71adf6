/**
 * Compares each answer of the store with the ledger and carries it into the ledger. What does not fit is a broken invariant, by its number
 * in docs/invariants.md.
 */
import { LIMITS } from "../../src/message/limits.ts";
import type { Accepted, Claim, ClaimedMessage, NewMessage } from "../../src/message/message.ts";
import type { Settle } from "../../src/message/settlement.ts";
import type { TopicDefinition } from "../../src/message/topic.ts";
import type {
  ClaimRequest,
  EnqueueOptions,
  Intervention,
  InterventionResult,
  PruneRequest,
  SettleResult,
} from "../../src/store/store.ts";
import { wrongDecision } from "./decision.ts";
import { type Entry, type Ledger, scopeOf } from "./ledger.ts";
import { asSaid } from "./said.ts";
import type { World } from "./world.ts";

/** What else is known where a history is played for the first time. */
export interface Witnesses {
  /** What is wrong with a message, compared with what was sent. */
  readonly sent: (message: NewMessage) => string | null;
  /** Whether it was given to deliver(), and may have been attempted before it was stored. */
  readonly direct: (id: string) => boolean;
  /** Whether its receiver has it. */
  readonly took: (message: NewMessage) => boolean;
  /** Whose messages failed lately in a topic. */
  readonly failing: (topic: string) => readonly (string | null)[];
  /** Whether nothing has gone wrong for so long that nobody may lose a lease. */
  readonly calm: () => boolean;
  readonly keptMs: number;
}

/** How long a worker may go by what it knew of a topic before. */
const HEARD_MS = 8_000;

export class Judge {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #witnesses: Witnesses | null;

  constructor(world: World, ledger: Ledger, witnesses: Witnesses | null = null) {
    this.#world = world;
    this.#ledger = ledger;
    this.#witnesses = witnesses;
  }

  enqueued(messages: readonly NewMessage[], answer: readonly Accepted[], { atomic }: EnqueueOptions = {}): void {
    this.#demand(messages.length <= LIMITS.batchMessagesMax, "I10", `${messages.length} messages in one enqueue`);
    for (const message of messages) {
      this.#ledger.given.set(message.id, message);
      const wrong = this.#witnesses?.sent(message) ?? null;
      this.#demand(wrong === null, "I8", `${message.topic} ${message.id} ${wrong}`);
    }
    const fresh = new Map<string, NewMessage>();
    const keys = new Map<string, NewMessage>();
    const expected = messages.map((message): Accepted => {
      const known = fresh.get(message.id) ?? this.#ledger.entries.get(message.id)?.message;
      if (known) return { kind: known.payload === message.payload ? "accepted" : "conflict", id: message.id };
      const scope = scopeOf(message);
      const first = scope === null ? undefined : (keys.get(scope) ?? this.#holder(scope));
      if (first) return { kind: first.payload === message.payload ? "duplicate" : "conflict", id: first.id };
      if (scope !== null) keys.set(scope, message);
      fresh.set(message.id, message);
      return { kind: "accepted", id: message.id };
    });
    this.#same(answer, expected, "I7", "enqueue");
    const refused = atomic !== "each" && expected.some(({ kind }) => kind === "conflict");
    if (!refused) for (const message of fresh.values()) this.#ledger.accept(message, this.#world.nowMs);
  }

  /** Refused as a whole: only for a topic that is not there. */
  enqueueRefused(messages: readonly NewMessage[], code: string): void {
    const unknown = messages.some(({ topic }) => !this.#ledger.topics.has(topic));
    this.#demand(unknown && code === "unknown_topic", "I1", `an enqueue to known topics was refused as ${code}`);
  }

  claimed(request: ClaimRequest, answer: readonly ClaimedMessage[], by = ""): void {
    const { nowMs } = this.#world;
    const limits = new Map(request.lanes.map(({ lane, limit }) => [lane, limit]));
    const probed = new Set(request.lanes.flatMap(({ lane, from }) => (from === undefined ? [] : [lane])));
    let bytes = 0;
    for (const message of answer) {
      const entry = this.#ledger.entries.get(message.id);
      if (!entry) {
        this.#world.violated("I2", `${message.id} was claimed and is not there`);
        return;
      }
      this.#claimable(entry, request);
      this.#asAccepted(entry, message, entry.message.payload);
      this.#demand(message.attempt === entry.attempts + 1, "I5", `${of(entry)} was claimed as attempt ${message.attempt}`);
      this.#demand(message.base === entry.base, "I5", `${of(entry)} was claimed with base ${message.base}`);
      bytes += Buffer.byteLength(message.payload);
      if (!request.ids) limits.set(message.lane, (limits.get(message.lane) ?? 0) - 1);
      this.#open(entry);
      this.#lease(message, request.leaseMs, by);
      this.#ledger.claim(entry, message.claim.lease, nowMs);
      // Only of what a breaker holds it is said from where.
      entry.spared = probed.has(message.lane) && entry.rows === 0 && entry.suspicion === 0;
    }
    this.#apart(answer);
    this.#demand(
      [...limits.values()].every((left) => left >= 0),
      "I10",
      "a claim brought more than its lanes allow",
    );
    this.#demand(answer.length < 2 || bytes <= (request.bytesMax ?? bytes), "I10", "a claim brought more bytes than it may");
  }

  extended(claims: readonly Claim[], leaseMs: number, answer: readonly string[]): void {
    const expected = claims.map(({ lease, token }) => {
      const held = this.#ledger.leases.get(lease);
      if (held?.token !== token) return "lost";
      held.untilMs = this.#world.nowMs + leaseMs;
      return "extended";
    });
    this.#same(answer, expected, "I4", "extend");
  }

  settled(settles: readonly Settle[], answer: readonly SettleResult[]): void {
    this.#demand(settles.length <= LIMITS.batchMessagesMax, "I10", `${settles.length} outcomes in one settle`);
    const expected = settles.map((one): SettleResult => {
      const entry = this.#ledger.entries.get(one.id);
      const lease = this.#ledger.leases.get(one.claim.lease);
      const live = lease?.token === one.claim.token && lease.open.has(one.id);
      if (!entry || !live || entry.attempts !== one.attempt) {
        this.#demand(!this.#witnesses?.calm(), "I4", `${one.id} is settled under a claim that is over while everything is well`);
        return "lost";
      }
      this.#decided(entry, one);
      this.#ledger.settle(entry, one, this.#world.nowMs);
      return "settled";
    });
    this.#same(answer, expected, "I4", "settle");
  }

  reclaimed(request: { leaseMs: number; limit: number }, answer: readonly ClaimedMessage[], by = ""): void {
    const { nowMs } = this.#world;
    this.#demand(answer.length === 0 || !this.#witnesses?.calm(), "I11", `${answer[0]?.id} was lost while everything is well`);
    const expired = [...this.#ledger.leases].filter(([, { untilMs }]) => untilMs < nowMs);
    const taken = new Set(answer.map(({ claim }) => claim.lease));
    this.#demand(taken.size === Math.min(request.limit, expired.length), "I6", "reclaim left a lease that ran out");
    for (const id of taken) {
      const held = this.#ledger.leases.get(id);
      if (!held || held.untilMs >= nowMs) {
        this.#world.violated("I3", `lease ${id} was taken over before its time`);
        return;
      }
      const mine = answer.filter(({ claim }) => claim.lease === id);
      this.#demand(mine.length === held.open.size, "I2", `lease ${id} held ${held.open.size} and gave back ${mine.length}`);
      for (const message of mine) {
        const entry = this.#ledger.entries.get(message.id);
        if (!entry || entry.lease !== id) {
          this.#world.violated("I3", `${message.id} was not in lease ${id}`);
          return;
        }
        this.#demand(message.claim.token !== held.token, "I4", `${of(entry)} was taken over under its old token`);
        this.#demand(message.attempt === entry.attempts && message.base === entry.base, "I5", `${of(entry)} counts otherwise`);
        this.#asAccepted(entry, message, "");
      }
      Object.assign(held, { token: mine[0]?.claim.token, untilMs: nowMs + request.leaseMs, by });
    }
  }

  intervened(intervention: Intervention, answer: InterventionResult): void {
    const { id, action, revision } = intervention;
    this.#demand(asSaid(intervention), "I5", `${action} of ${id} is not what the person said: ${JSON.stringify(intervention)}`);
    const entry = this.#ledger.entries.get(id);
    const expected = !entry
      ? "not_found"
      : revision !== undefined && revision !== entry.revision
        ? "revision_conflict"
        : this.#ledger.allows(entry, action)
          ? "done"
          : "wrong_state";
    this.#demand(
      answer.kind === expected,
      "I2",
      `${action} of ${entry ? of(entry) : id} was answered ${answer.kind}, not ${expected}`,
    );
    if (entry && answer.kind === "done") this.#ledger.intervene(entry, intervention, this.#world.nowMs);
  }

  /** Returns what has to be gone now. */
  pruned({ keptMs, deadKeptMs = keptMs, limit }: PruneRequest, answer: number): Entry[] {
    this.#demand(keptMs === (this.#witnesses?.keptMs ?? keptMs), "I2", `retention keeps what is settled for ${keptMs} ms`);
    const gone = this.#ledger.prune(keptMs, deadKeptMs, limit, this.#world.nowMs);
    this.#demand(
      answer === gone.length,
      "I2",
      `retention deleted ${answer} where ${gone.length} are settled and past their time`,
    );
    return gone;
  }

  led(name: string, owner: string, ttlMs: number, held: boolean): void {
    const { nowMs } = this.#world;
    const leader = this.#ledger.leaders.get(name);
    const other = leader !== undefined && leader.owner !== owner && leader.untilMs > nowMs;
    this.#demand(!(held && other), "I9", `${owner} leads ${name} beside ${leader?.owner}`);
    if (held) this.#ledger.leaders.set(name, { owner, untilMs: nowMs + ttlMs });
    else if (ttlMs <= 0 && leader?.owner === owner) this.#ledger.leaders.delete(name);
  }

  topicPut(definition: TopicDefinition): void {
    const { nowMs } = this.#world;
    const known = this.#ledger.topics.get(definition.name);
    const attempts = definition.retry.attemptsMax ?? 10;
    this.#ledger.topics.set(definition.name, {
      definition,
      paused: known?.paused ?? false,
      disabled: false,
      openSinceMs: known?.disabled === false ? known.openSinceMs : nowMs,
      shutSinceMs: known?.shutSinceMs ?? nowMs,
      attemptsLeast: Math.min(known?.attemptsLeast ?? attempts, attempts),
      attemptsMost: Math.max(known?.attemptsMost ?? attempts, attempts),
    });
  }

  /** What fails for one tenant alone holds nobody else. */
  tripped(name: string, tenantId: string | null): void {
    const failing = this.#witnesses?.failing(name) ?? [];
    const alone = tenantId === null && failing.length === 1 && failing[0] !== null;
    this.#demand(!alone, "I11", `all of ${name} is held although only what tenant ${failing[0]} sends fails`);
  }

  topicHeld(name: string, how: { paused?: boolean; disabled?: boolean }): void {
    const topic = this.#ledger.topics.get(name);
    if (!topic) return;
    if ((how.paused && !topic.paused) || (how.disabled && !topic.disabled)) topic.shutSinceMs = this.#world.nowMs;
    Object.assign(topic, how, how.paused === false ? { disabled: false } : {});
    if (!topic.paused && !topic.disabled) topic.openSinceMs = this.#world.nowMs;
  }

  #holder(scope: string): NewMessage | undefined {
    const id = this.#ledger.dedupe.get(scope);
    return id === undefined ? undefined : this.#ledger.entries.get(id)?.message;
  }

  #claimable(entry: Entry, { ids, due }: ClaimRequest): void {
    const { nowMs } = this.#world;
    if (entry.status === "processing") {
      this.#world.violated("I3", `${of(entry)} was claimed while lease ${entry.lease} runs`);
    } else if (ids) {
      this.#demand(ids.includes(entry.message.id), "I3", `${of(entry)} was claimed and nobody named it`);
      const free = entry.status === "pending" && entry.heldReason === null && !entry.ordered && (!due || entry.dueMs <= nowMs);
      this.#demand(free, "I3", `${of(entry)} was claimed by its id`);
    } else if (entry.ordered && this.#ledger.isClaimable({ ...entry, ordered: false }, nowMs)) {
      const head = this.#ledger.keyOf(entry).waiting[0];
      const first = head ? of(head) : "what is in flight";
      this.#demand(
        this.#ledger.isClaimable(entry, nowMs),
        "order",
        `${of(entry)} was claimed out of its turn: first comes ${first}`,
      );
    } else {
      const text = `${of(entry)} was claimed although it must not be: due in ${entry.dueMs - nowMs} ms`;
      this.#demand(this.#ledger.isClaimable(entry, nowMs), "I3", text);
    }
  }

  /** Suspects of killing workers are few in one lease, and among themselves: what is lost with it says who it was (I6). */
  #apart(answer: readonly ClaimedMessage[]): void {
    const suspects = new Map<string, number[]>();
    for (const { claim, suspicion } of answer) suspects.set(claim.lease, [...(suspects.get(claim.lease) ?? []), suspicion]);
    for (const [lease, all] of suspects) {
      const [worst, least] = [Math.max(...all), Math.min(...all)];
      const most = worst === 0 ? all.length : worst === 1 ? LIMITS.suspectGroupMax : 1;
      this.#demand(worst === least && all.length <= most, "I6", `lease ${lease} has suspects among others: ${all.join()}`);
    }
  }

  /** Whether anything of its topic may be taken: what people stopped stays where it is, once everybody has heard of it. */
  #open({ message }: Entry): void {
    const topic = this.#ledger.topics.get(message.topic);
    if (!topic || !(topic.paused || topic.disabled) || !this.#witnesses?.calm()) return;
    const forMs = this.#world.nowMs - topic.shutSinceMs;
    this.#demand(forMs < HEARD_MS, "I6", `${message.topic} ${message.id} was claimed ${forMs} ms after its topic was stopped`);
  }

  #lease({ id, claim }: ClaimedMessage, leaseMs: number, by: string): void {
    const { leases, leasesSeen } = this.#ledger;
    const known = leases.get(claim.lease);
    if (known) {
      this.#demand(known.token === claim.token, "I4", `lease ${claim.lease} has two tokens`);
      known.open.add(id);
      return;
    }
    this.#demand(!leasesSeen.has(claim.lease), "I4", `lease ${claim.lease} was given out twice`);
    leasesSeen.add(claim.lease);
    const { nowMs } = this.#world;
    leases.set(claim.lease, { token: claim.token, untilMs: nowMs + leaseMs, open: new Set([id]), by, sinceMs: nowMs });
  }

  #asAccepted(entry: Entry, message: ClaimedMessage, payload: string): void {
    const { message: accepted } = entry;
    this.#demand(message.payload === payload, "I8", `${of(entry)} has other bytes than were accepted`);
    this.#demand(message.key === accepted.key, "I7", `${of(entry)} has key ${message.key}`);
    const rest = message.topic === accepted.topic && message.tenantId === accepted.tenantId;
    this.#demand(rest && message.suspicion === entry.suspicion, "I8", `${of(entry)} was claimed as something else`);
  }

  /** What was decided about an attempt, in any process (I5, I6). */
  #decided(entry: Entry, { settlement }: Settle): void {
    if (settlement.kind === "release" || !this.#witnesses) return;
    const { took, direct } = this.#witnesses;
    if (settlement.kind === "delivered") {
      this.#demand(took(entry.message), "one effect", `${of(entry)} is settled as delivered and its receiver has nothing of it`);
      return;
    }
    const topic = this.#ledger.topics.get(entry.message.topic);
    const wrong = topic ? wrongDecision(entry, settlement, topic, direct(entry.message.id)) : null;
    if (wrong) this.#world.violated(wrong.invariant, `${of(entry)} ${wrong.text}`);
  }

  #demand(holds: boolean, invariant: string, text: string): void {
    if (!holds) this.#world.violated(invariant, text);
  }

  #same(answer: readonly unknown[], expected: readonly unknown[], invariant: string, verb: string): void {
    const [a, b] = [JSON.stringify(answer), JSON.stringify(expected)];
    this.#demand(a === b, invariant, `${verb} was answered ${a}, not ${b}`);
  }
}

export const of = ({ message, status, attempts }: Entry): string =>
  `${message.topic} ${message.id.slice(-12)} (${status}, ${attempts} attempts)`;
