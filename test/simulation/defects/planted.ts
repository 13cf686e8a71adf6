/**
 * Defects as they are made, some of them as they once were (N1, N16, N17): text of the real source and what replaces it. They
 * are put in while a bundle for a test is made, never in the source, and the simulation must find each.
 */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Defect {
  readonly name: string;
  readonly what: string;
  readonly edits: readonly Edit[];
  /** Which invariants may be named as broken. */
  readonly breaks: readonly string[];
  /** `postgres`: only a comparison with the real server shows it. */
  readonly shownBy: "memory" | "postgres";
  /** Showed it last. */
  readonly seed: number;
}

export const PLANTED: readonly Defect[] = [
  {
    name: "n1-poison-holds-up-the-healthy",
    what: "every failure is evidence against the receiver, failed ones wait among the others, and probes take the oldest",
    shownBy: "memory",
    seed: 2,
    breaks: ["I11"],
    edits: [
      {
        file: "src/worker/breaker/note-outcome.ts",
        find: "const first = neverFailed(attempt.message);",
        replace: "const first = true;",
      },
      {
        file: "src/worker/breaker/spots.ts",
        find: "if (!this.#good) this.now = this.#next(random);",
        replace: "this.now = OLDEST;",
      },
      {
        file: "src/store/memory/lanes.ts",
        find: "return retried && suspicion === 0 && !ordered;",
        replace: "return retried && suspicion === 0 && !ordered && false;",
      },
    ],
  },
  {
    name: "n16-keys-that-are-looked-at-hide-the-others",
    what: "a claim looks at the first thousand ordering keys of a lane, whatever they wait for",
    shownBy: "postgres",
    seed: 1,
    breaks: ["I11"],
    edits: [
      {
        file: "src/store/postgres/statements/claim-ordered.ts",
        find: "where r.lane_id = l.lane and not r.behind and r.due <= ${clock} ${only}",
        replace:
          "where r.lane_id = l.lane and not r.behind and r.due <= ${clock} ${only} and r.ordering_key = any (array(select q.ordering_key from ${s}.ready_ordered q where q.lane_id = l.lane order by q.ordering_key limit 1000))",
      },
    ],
  },
  {
    name: "n17-order-by-the-producers-clock",
    what: "the order of a key is that of the ids, which are made by the producers' clocks",
    shownBy: "memory",
    seed: 9,
    breaks: ["order"],
    edits: [
      {
        file: "src/store/memory/lanes.ts",
        find: "const byPlace: Order = (a, b) => a.seq - b.seq;",
        replace: "const byPlace: Order = (a, b) => byId(a, b);",
      },
    ],
  },
  {
    name: "a-stale-claim-settles",
    what: "the token of a claim is not compared",
    shownBy: "memory",
    seed: 3,
    breaks: ["I4"],
    edits: [
      {
        file: "src/store/memory/claim.ts",
        find: "return lease?.token === held.token ? lease : undefined;",
        replace: "return lease;",
      },
    ],
  },
  {
    name: "a-repeated-enqueue-has-a-new-id",
    what: "an enqueue whose answer was lost is tried again under another id",
    shownBy: "memory",
    seed: 10,
    breaks: ["I1", "I7", "one effect"],
    edits: [
      {
        file: "src/client/acceptance.ts",
        find: "const results = await store.enqueue(messages);",
        replace: "const results = await store.enqueue(messages.map((m) => ({ ...m, id: m.id.slice(0, -2) + (10 + failed) })));",
      },
    ],
  },
  {
    name: "the-key-changes-at-a-retry",
    what: "a message without a key gets another idempotency key with each attempt",
    shownBy: "memory",
    seed: 7,
    breaks: ["I7"],
    edits: [
      {
        file: "src/worker/attempt.ts",
        find: "idempotencyKey: key ?? id,",
        replace: "idempotencyKey: key ?? (message.attempt > 1 ? `${id}-${message.attempt}` : id),",
      },
    ],
  },
  {
    name: "another-payload-under-the-same-key",
    what: "a repeated key counts as the same message, whatever its payload",
    shownBy: "memory",
    seed: 9,
    breaks: ["I7"],
    edits: [
      {
        file: "src/store/memory/enqueue.ts",
        find: "a.payload === b.payload;",
        replace: "a.topic === b.topic;",
      },
    ],
  },
  {
    name: "retention-deletes-what-is-not-settled",
    what: "what is old is deleted, delivered or not",
    shownBy: "memory",
    seed: 2,
    breaks: ["I2", "I12"],
    edits: [
      {
        file: "src/store/memory/upkeep.ts",
        find: "if (stored.settledMs === null || stored.settledMs > now - stays) continue;",
        replace: "if (stored.status === 'processing' || (stored.settledMs ?? stored.createdMs) > now - stays) continue;",
      },
    ],
  },
  {
    name: "one-attempt-too-many",
    what: "a message dies one attempt after its budget is spent",
    shownBy: "memory",
    seed: 14,
    breaks: ["I6"],
    edits: [
      {
        file: "src/message/decide.ts",
        find: "if (spent >= rules.policy.attemptsMax) {",
        replace: "if (spent > rules.policy.attemptsMax) {",
      },
    ],
  },
  {
    name: "a-worker-that-only-listens",
    what: "an idle worker waits for hints and does not look by itself, and hints may be lost",
    shownBy: "memory",
    seed: 7,
    breaks: ["I11", "I6"],
    edits: [
      {
        file: "src/worker/look.ts",
        find: "if (this.#underWay) return Number.POSITIVE_INFINITY;",
        replace: "if (this.#underWay || (this.#wanted === 'poll' && !unheard)) return Number.POSITIVE_INFINITY;",
      },
    ],
  },
  {
    name: "a-wait-that-was-asked-for-is-ignored",
    what: "a receiver says when to come back, and the policy's own wait is taken",
    shownBy: "memory",
    seed: 2,
    breaks: ["I6"],
    edits: [
      {
        file: "src/message/decide.ts",
        find: "const delayMs = Math.max(retryDelayMs(rules.policy, step, random), askedMs);",
        replace: "const delayMs = retryDelayMs(rules.policy, step, random);",
      },
    ],
  },
  {
    name: "a-key-is-everybodys",
    what: "a key counts for all tenants of its topic",
    shownBy: "memory",
    seed: 1,
    breaks: ["I7"],
    edits: [
      {
        file: "src/store/memory/enqueue.ts",
        find: "return key === null ? null : JSON.stringify([topic, tenantId, key]);",
        replace: "return key === null ? null : JSON.stringify([topic, key]);",
      },
    ],
  },
  {
    name: "what-is-delivered-is-replayed",
    what: "a person may put back what has arrived",
    shownBy: "memory",
    seed: 4,
    breaks: ["I2"],
    edits: [
      {
        file: "src/store/memory/intervene.ts",
        find: 'if (stored.status !== "pending") return false;',
        replace:
          'if (stored.status === "delivered") return action === "replay";\n  if (stored.status !== "pending") return false;',
      },
    ],
  },
  {
    name: "a-rate-that-nobody-keeps",
    what: "every worker that asks for starts of a limited topic gets them",
    shownBy: "memory",
    seed: 3,
    breaks: ["I10"],
    edits: [
      {
        file: "src/message/rate.ts",
        find: "const granted = amount < 0 ? amount : Math.min(amount, Math.floor(Math.max(0, there) + NEARLY));",
        replace: "const granted = amount;",
      },
    ],
  },
  {
    name: "an-attempt-under-a-lease-that-is-over",
    what: "a worker that was frozen begins what it claimed before",
    shownBy: "memory",
    seed: 1,
    breaks: ["I3"],
    edits: [
      {
        file: "src/worker/leases.ts",
        find: "return !lease.lost && nowMs < lease.untilMs - leaseHeadroomMs(lease.leaseMs);",
        replace: "return !lease.lost;",
      },
    ],
  },
  {
    name: "retention-that-keeps-too-short",
    what: "what is settled is deleted long before its time",
    shownBy: "memory",
    seed: 1,
    breaks: ["I2"],
    edits: [
      {
        file: "src/maintenance/jobs/prune-settled.ts",
        find: "const count = await store.prune({ keptMs, deadKeptMs,",
        replace: "const count = await store.prune({ keptMs: keptMs / 10, deadKeptMs,",
      },
    ],
  },
];
