import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Carry,
  PLAN,
  type Plan,
  type PlanInput,
  type PlanLane,
  type PlanTenant,
  type PlanTopic,
  plan,
} from "../../../src/worker/plan.ts";
import { waterFill } from "../../../src/worker/water-fill.ts";

const topicNamed = (name: string, with_: Partial<PlanTopic> = {}): PlanTopic => ({
  name,
  leaseMs: 30_000,
  held: 0,
  allowance: Number.POSITIVE_INFINITY,
  tenantLimit: null,
  ...with_,
});

interface TestLane extends PlanLane {
  servedMs: number;
}

let made = 0;
const lane = (topic: PlanTopic, with_: Partial<PlanLane> = {}): TestLane => ({
  lane: `l${++made}`,
  topic,
  tenant: { held: 0 },
  priority: 0,
  suspicion: 0,
  retried: false,
  dueMs: 1_000_000,
  servedMs: Number.NEGATIVE_INFINITY,
  demand: 1_000,
  ...with_,
});

const NO_CARRY: Carry = { aged: 0, retried: 0 };

const input = <L extends PlanLane>(lanes: L[], with_: Partial<PlanInput<L>> = {}): PlanInput<L> => ({
  lanes,
  nowMs: 1_000_000,
  capacity: 100,
  total: 200,
  slots: 100,
  retriedHeld: 0,
  carry: NO_CARRY,
  suspectGroups: 0,
  suspectSingles: 0,
  ...with_,
});

const given = <L extends PlanLane>(planned: Plan<L>, one: L): number =>
  planned.claims.flatMap(({ lanes }) => lanes).reduce((sum, { lane, limit }) => (lane === one ? sum + limit : sum), 0);

const totalOf = (planned: Plan<PlanLane>): number =>
  planned.claims.flatMap(({ lanes }) => lanes).reduce((sum, { limit }) => sum + limit, 0);

describe("waterFill", () => {
  it("raises the lowest first and hands everything out", () => {
    expect(
      waterFill(
        [
          { held: 0, max: 9 },
          { held: 4, max: 9 },
        ],
        6,
      ),
    ).toEqual([5, 1]);
    expect(
      waterFill(
        [
          { held: 0, max: 2 },
          { held: 4, max: 9 },
        ],
        6,
      ),
    ).toEqual([2, 4]);
    expect(
      waterFill(
        [
          { held: 0, max: 9 },
          { held: 0, max: 9 },
        ],
        3,
      ),
    ).toEqual([2, 1]);
    expect(waterFill([{ held: 7, max: 3 }], 9)).toEqual([3]);
    expect(waterFill([], 5)).toEqual([]);
  });

  it("never gives more than there is or than fits, and leaves nothing while one has room", () => {
    const holders = fc.array(fc.record({ held: fc.nat(50), max: fc.nat(50) }), { maxLength: 20 });
    fc.assert(
      fc.property(holders, fc.nat(300), (all, amount) => {
        const grants = waterFill(all, amount);
        const sum = grants.reduce((a, b) => a + b, 0);
        grants.forEach((grant, i) => {
          expect(grant).toBeGreaterThanOrEqual(0);
          expect(grant).toBeLessThanOrEqual(all[i]?.max ?? 0);
        });
        expect(sum).toBe(
          Math.min(
            amount,
            all.reduce((total, { max }) => total + max, 0),
          ),
        );
      }),
    );
  });
});

describe("plan", () => {
  it("gives a lone lane everything, and half to a tenant while another waits", () => {
    const topic = topicNamed("a/b");
    const a = lane(topic);
    expect(given(plan(input([a])), a)).toBe(100);
    const b = lane(topic);
    const both = plan(input([a, b]));
    expect([given(both, a), given(both, b)]).toEqual([50, 50]);
    const held = lane(topic, { tenant: { held: 100 } });
    expect([given(plan(input([held, b])), held), given(plan(input([held, b])), b)]).toEqual([0, 100]);
  });

  it("does not spend a small tenant's share where a large one could use it", () => {
    const topic = topicNamed("a/b");
    const flood = lane(topic, { demand: 1_000 });
    const small = Array.from({ length: 10 }, () => lane(topic, { demand: 1 }));
    const planned = plan(input([flood, ...small]));
    for (const one of small) expect(given(planned, one)).toBeGreaterThanOrEqual(1);
    expect(given(planned, flood)).toBeGreaterThanOrEqual(80);
  });

  it("shares equally between topics, and between tenants within each", () => {
    const [x, y] = [topicNamed("x/x"), topicNamed("y/y")];
    const many = Array.from({ length: 9 }, () => lane(x));
    const one = lane(y);
    const planned = plan(input([...many, one]));
    expect(given(planned, one)).toBe(50);
    for (const other of many) expect(given(planned, other)).toBeGreaterThanOrEqual(5);
  });

  it("prefers the higher priority, leaves a fifth to the lane that was passed over longest, and lets the low one age", () => {
    const topic = topicNamed("a/b");
    const tenant: PlanTenant = { held: 0 };
    const high = lane(topic, { priority: 10, tenant, servedMs: 999_999 });
    const low = lane(topic, { priority: 0, tenant, dueMs: 999_500 });
    const planned = plan(input([high, low]));
    expect([given(planned, high), given(planned, low)]).toEqual([80, 20]);
    const aged = lane(topic, { priority: 0, tenant, dueMs: 980_000 });
    expect(given(plan(input([high, aged])), aged)).toBe(80);
    // A flood that is served all the time does not outrank others by the length of its own backlog.
    const flood = lane(topic, { priority: 0, tenant, dueMs: 0, servedMs: 999_999 });
    expect(given(plan(input([high, flood])), high)).toBeGreaterThanOrEqual(80);
  });

  it("with room for one at a time, every fifth goes to the lane that was passed over", () => {
    const topic = topicNamed("a/b");
    const high = lane(topic, { priority: 100 });
    const low = lane(topic, { priority: -100, dueMs: 999_999 });
    let carry = NO_CARRY;
    const turns: string[] = [];
    for (let i = 0; i < 10; i++) {
      high.servedMs = 1_000_000;
      const planned = plan(input([high, low], { capacity: 1, carry }));
      carry = planned.carry;
      turns.push(given(planned, high) === 1 ? "high" : "low");
    }
    expect(turns.filter((turn) => turn === "low")).toHaveLength(2);
  });

  it("N1: what failed before gets a quarter while others wait, half of the slots at most, and never starves", () => {
    const topic = topicNamed("a/b");
    const fresh = lane(topic);
    const again = lane(topic, { retried: true });
    const both = plan(input([fresh, again]));
    expect([given(both, fresh), given(both, again)]).toEqual([75, 25]);
    expect(given(plan(input([again])), again)).toBe(50);
    expect(given(plan(input([again], { retriedHeld: 45 })), again)).toBe(5);
    expect(totalOf(plan(input([again], { retriedHeld: 50 })))).toBe(0);
    const busy = plan(input([fresh, again], { retriedHeld: 50 }));
    expect([given(busy, fresh), given(busy, again)]).toEqual([100, 0]);
    let carry = NO_CARRY;
    let turns = 0;
    for (let i = 0; i < 40; i++) {
      const planned = plan(input([fresh, again], { capacity: 1, carry }));
      carry = planned.carry;
      turns += given(planned, again);
    }
    expect(turns).toBe(10);
  });

  it("keeps suspects apart: a few in a group, and singles, never with others", () => {
    const topic = topicNamed("a/b");
    const [sound, maybe, likely] = [lane(topic), lane(topic, { suspicion: 1 }), lane(topic, { suspicion: 2 })];
    const planned = plan(input([sound, maybe, likely]));
    expect(planned.claims.map(({ suspicion, lanes }) => [suspicion, lanes.map(({ limit }) => limit)])).toEqual([
      [2, [1]],
      [1, [8]],
      [0, [91]],
    ]);
    const busy = plan(input([maybe, likely], { suspectGroups: PLAN.suspectGroupsMax, suspectSingles: 1 }));
    expect(busy.claims).toEqual([]);
  });

  it("names at most 200 lanes, and comes round to all of them", () => {
    const topic = topicNamed("a/b");
    const lanes = Array.from({ length: 1_000 }, () => lane(topic));
    const served = new Set<TestLane>();
    for (let round = 0; round < 6; round++) {
      const planned = plan(input(lanes, { capacity: 1_000, total: 2_000, nowMs: 1_000_000 + round }));
      const named = planned.claims.flatMap((claim) => claim.lanes);
      expect(named.length).toBeLessThanOrEqual(PLAN.lanesMax);
      for (const { lane } of named) {
        lane.servedMs = 1_000_000 + round;
        served.add(lane);
      }
    }
    expect(served.size).toBe(1_000);
  });

  it("makes one claim per lease time", () => {
    const [short, long] = [topicNamed("a/s", { leaseMs: 1_000 }), topicNamed("a/l")];
    const planned = plan(input([lane(short), lane(long), lane(short)]));
    expect(new Map(planned.claims.map(({ leaseMs, lanes }) => [leaseMs, lanes.length]))).toEqual(
      new Map([
        [1_000, 2],
        [30_000, 1],
      ]),
    );
  });
});

/** Random topics, tenants and lanes in any state. */
const worlds = fc
  .array(
    fc.record({
      held: fc.nat(60),
      allowance: fc.oneof(fc.nat(60), fc.constant(Number.POSITIVE_INFINITY)),
      tenantLimit: fc.option(fc.integer({ min: 1, max: 20 })),
      leaseMs: fc.constantFrom(1_000, 30_000),
      tenants: fc.array(
        fc.record({
          held: fc.nat(20),
          lanes: fc.array(
            fc.record({
              priority: fc.integer({ min: -100, max: 100 }),
              suspicion: fc.constantFrom(0 as const, 0 as const, 0 as const, 1 as const, 2 as const),
              retried: fc.boolean(),
              dueMs: fc.integer({ min: 0, max: 1_000_000 }),
              servedMs: fc.oneof(fc.constant(Number.NEGATIVE_INFINITY), fc.integer({ min: 0, max: 1_000_000 })),
              demand: fc.integer({ min: 1, max: 1_000 }),
            }),
            { maxLength: 4 },
          ),
        }),
        { maxLength: 5 },
      ),
    }),
    { maxLength: 5 },
  )
  .map((topics) =>
    topics.flatMap(({ tenants, ...rest }, i) => {
      const topic = topicNamed(`t/${i}`, rest);
      return tenants.flatMap(({ held, lanes }) => {
        const tenant = { held };
        return lanes.map((with_) => lane(topic, { ...with_, tenant }));
      });
    }),
  );

describe("suspects of both degrees with room for one", () => {
  it("take turns: the one that was served longest ago is claimed", () => {
    const topic = topicNamed("t/one", { allowance: 1 });
    const single = lane(topic, { suspicion: 2 });
    const group = lane(topic, { suspicion: 1 });
    const claimed = [1, 2, 3, 4].map((round) => {
      const planned = plan(input([single, group], { capacity: 5 }));
      const [one] = planned.claims.flatMap((claim) => claim.lanes);
      expect(totalOf(planned)).toBe(1);
      if (one) one.lane.servedMs = round;
      return one?.lane.suspicion;
    });
    expect(claimed).toEqual([2, 1, 2, 1]);
  });
});

describe("plan, whatever the world looks like", () => {
  it("never exceeds capacity, allowances and tenants' limits, and never mixes suspects with others", () => {
    fc.assert(
      fc.property(
        worlds,
        fc.integer({ min: 0, max: 1_000 }),
        fc.nat(4),
        fc.nat(1),
        (lanes, capacity, suspectGroups, suspectSingles) => {
          const planned = plan(input(lanes, { capacity, total: 2_000, suspectGroups, suspectSingles }));
          expect(totalOf(planned)).toBeLessThanOrEqual(capacity);
          const byTopic = new Map<PlanTopic, number>();
          const byTenant = new Map<PlanTenant, number>();
          for (const claim of planned.claims) {
            const sizes = claim.lanes.map(({ limit }) => limit);
            if (claim.suspicion > 0) expect(sizes.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(claim.suspicion === 1 ? 8 : 1);
            for (const { lane: one, limit } of claim.lanes) {
              expect(limit).toBeGreaterThanOrEqual(1);
              expect(one.suspicion).toBe(claim.suspicion);
              expect(one.topic.leaseMs).toBe(claim.leaseMs);
              byTopic.set(one.topic, (byTopic.get(one.topic) ?? 0) + limit);
              byTenant.set(one.tenant, (byTenant.get(one.tenant) ?? 0) + limit);
              if (one.topic.tenantLimit !== null) {
                expect(one.tenant.held + (byTenant.get(one.tenant) ?? 0)).toBeLessThanOrEqual(one.topic.tenantLimit);
              }
            }
          }
          for (const [topic, amount] of byTopic) expect(amount).toBeLessThanOrEqual(topic.allowance);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("starves nobody: with a slot a round, every lane that may be served is served before long", () => {
    fc.assert(
      fc.property(worlds, fc.integer({ min: 1, max: 20 }), (world, capacity) => {
        // Everything that was claimed is over before the next round, and every lane always has more.
        const lanes = world.map((one) => ({
          ...one,
          topic: { ...one.topic, held: 0 },
          tenant: { held: 0 },
        }));
        const able = lanes.filter(({ topic }) => topic.allowance > 0);
        const served = new Set<PlanLane>();
        let carry = NO_CARRY;
        for (let round = 1; round <= 30 * (able.length + 1) && served.size < able.length; round++) {
          const nowMs = 1_000_000 + round * 10;
          const planned = plan(input(lanes, { capacity, carry, nowMs }));
          carry = planned.carry;
          for (const { lane: one } of planned.claims.flatMap((claim) => claim.lanes)) {
            one.servedMs = nowMs;
            served.add(one);
          }
        }
        expect(served.size).toBe(able.length);
      }),
      { numRuns: 500 },
    );
  });
});
