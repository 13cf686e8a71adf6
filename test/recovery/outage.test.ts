/**
 * An outage as it is met: 5,000 messages die of six causes, each text with its own ids, timings and hosts. They must come out as six
 * groups with the right action first, and one redrive must heal what can be healed while the rest stays where it is.
 */
import { describe, expect, it } from "vitest";
import { createMakegood, reject, topic } from "../../src/index.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { dropSchema, openStore } from "../support/postgres.ts";
import { pause } from "../unit/delivery/support.ts";

const MESSAGES = 5_000;

interface Kind {
  readonly name: string;
  readonly code: string;
  readonly action: string;
  /** Delivered once the outage is over. */
  readonly heals: boolean;
  readonly text: (n: number) => string;
}

const hex = (n: number, digits: number): string =>
  ((n * 2_654_435_761) % 2 ** 32).toString(16).padStart(digits, "a").slice(0, digits);
const host = (n: number): string => ["pay-eu-1", "pay-eu-2", "pay-us-7", "10.2.0.14", "10.2.9.3"][n % 5] as string;

const KINDS: readonly Kind[] = [
  {
    name: "timeout",
    code: "TIMEOUT",
    action: "retry_exponential",
    heals: true,
    text: (n) => `POST https://${host(n)}:8443/charges/ch_${hex(n, 8)} timed out after ${4_000 + (n % 977)} ms`,
  },
  {
    name: "rate limit",
    code: "http_429",
    action: "retry_exponential",
    heals: true,
    text: (n) =>
      `the receiver answered 429: account acct_${hex(n, 8)} is above ${100 + (n % 40)} requests/s, retry in ${n % 60}s`,
  },
  {
    name: "server error",
    code: "http_503",
    action: "circuit_breaker",
    heals: true,
    text: (n) => `the receiver answered 503: upstream ${host(n)} has no healthy backend (request ${hex(n, 8)}-${hex(n + 1, 4)})`,
  },
  {
    name: "credentials",
    code: "http_401",
    action: "notify_ops",
    heals: false,
    text: (n) => `the receiver answered 401: token issued at 2026-11-1${n % 5}T0${n % 9}:1${n % 6}:00Z has expired`,
  },
  {
    name: "budget",
    code: "BUDGET_EXCEEDED",
    action: "fallback_model",
    heals: false,
    text: (n) => `tenant ${hex(n, 8)} has spent ${(n % 900) + 100}.${n % 90} of its monthly budget of 100.00 USD`,
  },
  {
    name: "defect",
    code: "ledger_mismatch",
    action: "manual_intervention",
    heals: false,
    text: (n) => `invoice ${10_000 + n} does not balance: debit ${n % 333}.50, credit ${n % 211}.25 (node ${host(n)})`,
  },
];

async function until(what: () => Promise<boolean>, ms: number): Promise<void> {
  const end = performance.now() + ms;
  while (!(await what())) {
    if (performance.now() > end) expect.fail(`not within ${ms} ms: ${what.toString()}`);
    await pause(50);
  }
}

describe("an outage of 5,000 messages", () => {
  it("is six groups, each with the right action first; one redrive heals what can be healed", { timeout: 120_000 }, async () => {
    const store = await openStore();
    let over = false;
    const charges = topic<{ n: number; kind: number }>("shop/charge", {
      sink: ({ n, kind }) => {
        const { heals, text, code } = KINDS[kind] as Kind;
        // Refused for good, so that the breaker does not hold the rest back: what dies is the point here.
        return over && heals ? undefined : reject(text(n), { code });
      },
    });
    const mg = await createMakegood({ store, topics: [charges], random: systemRandom, pollMs: 100 });
    try {
      const { recovery } = mg;
      if (recovery === null) throw new Error("this store has a recovery seam");
      for (let at = 0; at < MESSAGES; at += 500) {
        const batch = Array.from({ length: 500 }, (_, i) => ({ n: at + i, kind: (at + i) % KINDS.length }));
        await mg.enqueueMany(
          charges,
          batch.map((payload) => ({ payload, key: `charge-${payload.n}` })),
        );
      }
      mg.work();
      const evaluated = async () => (await recovery.candidates({ limit: 100, evaluationStatus: "evaluated" })).data.length;
      const stats = async () => recovery.stats();
      await until(async () => (await stats()).occurrences === MESSAGES && (await evaluated()) === KINDS.length, 60_000);

      const groups = (await recovery.groups({ limit: 100 })).data;
      expect(new Set(groups.map(({ errorCode }) => errorCode))).toEqual(new Set(KINDS.map(({ code }) => code)));
      expect(groups.length).toBe(KINDS.length);
      for (const kind of KINDS) {
        const group = groups.find(({ errorCode }) => errorCode === kind.code);
        const expected = Array.from({ length: MESSAGES }, (_, n) => n).filter((n) => KINDS[n % KINDS.length] === kind).length;
        expect(group, kind.name).toMatchObject({ occurrenceCount: expected, openMessages: expected });
        const { candidate, why } = await recovery.group(group?.groupId ?? 0);
        expect(candidate?.selectedAction, kind.name).toBe(kind.action);
        expect(why.length, kind.name).toBeGreaterThan(0);
      }

      over = true;
      const actor = { actor: "ops", actorType: "human" } as const;
      // Half of what is redriven still fails: the person knows that and says so.
      const request = {
        select: { topic: "shop/charge" },
        reason: "the outage is over",
        idempotencyKey: "heal",
        ratePerSecond: 2_000,
      };
      const { redrive, created } = await recovery.startRedrive(
        { ...request, canary: 0, failureShareMax: 1, rampFrom: 500 },
        actor,
      );
      expect(created).toBe(true);
      expect(redrive.counts.selected).toBe(MESSAGES);
      await until(async () => (await recovery.redrive(redrive.redriveId)).status === "done", 60_000);

      const healing = Array.from({ length: MESSAGES }, (_, n) => n).filter((n) => KINDS[n % KINDS.length]?.heals).length;
      expect((await recovery.redrive(redrive.redriveId)).counts).toEqual({
        selected: MESSAGES,
        waiting: 0,
        sent: 0,
        healed: healing,
        failed: MESSAGES - healing,
        skipped: 0,
      });
      const counts = await store.counts({ delivered: true });
      const of = (status: string) =>
        counts.filter((row) => row.topic === "shop/charge" && row.status === status).reduce((sum, row) => sum + row.count, 0);
      expect([of("delivered"), of("dead")]).toEqual([healing, MESSAGES - healing]);
      // What died again is the same failure, not a new group; what healed has no open message left.
      await until(async () => (await stats()).occurrences === MESSAGES + (MESSAGES - healing), 30_000);
      const after = (await recovery.groups({ limit: 100 })).data;
      expect(after.length).toBe(KINDS.length);
      for (const kind of KINDS) {
        const group = after.find(({ errorCode }) => errorCode === kind.code);
        expect(group?.openMessages === 0, kind.name).toBe(kind.heals);
      }
    } finally {
      await mg.close();
      await dropSchema(store.schema);
    }
  });
});
