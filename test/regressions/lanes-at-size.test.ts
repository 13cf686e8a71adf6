/**
 * N21: the missing lanes of a batch are made together, and what a worker keeps of very many lanes is bounded while each has its turn.
 */
import { describe, expect, it } from "vitest";
import { type Connection, createConnection } from "../../src/store/postgres/connection.ts";
import { createLaneTable } from "../../src/store/postgres/lane-table.ts";
import type { Lane } from "../../src/store/store.ts";
import { definition, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { LaneTable } from "../../src/worker/lanes.ts";
import { createTopicState, type TopicState } from "../../src/worker/topic-state.ts";
import { databaseUrl, dropSchema, openStore } from "../support/postgres.ts";

describe("N21: lanes at size", () => {
  it("topics that did not change are not read again, and a change by another process is seen", async () => {
    const store = await openStore();
    const other = await openStore({ schema: store.schema });
    try {
      await store.topics.put(definition(PLAIN), "code");
      const [first] = await store.topics.list();
      const [again] = await store.topics.list();
      expect(first?.name).toBe(PLAIN);
      expect(again).toBe(first);
      await other.topics.pause(PLAIN, true);
      expect((await store.topics.list())[0]?.paused).toBe(true);
      await other.topics.put(definition("t/second"), "code");
      expect((await store.topics.list()).map(({ name }) => name).sort()).toEqual([PLAIN, "t/second"].sort());
      await other.topics.trip(PLAIN, 60_000, "five in a row");
      expect((await store.topics.list()).find(({ name }) => name === PLAIN)?.breaker.state).toBe("open");
      await other.topics.delete("t/second", "code");
      expect((await store.topics.list()).map(({ name }) => name)).toEqual([PLAIN]);
    } finally {
      await store.close();
      await other.close();
      await dropSchema(store.schema);
    }
  });

  it("a batch for 1,000 new tenants makes their lanes in one statement", async () => {
    const store = await openStore();
    await store.topics.put(definition(PLAIN), "code");
    const connection = createConnection({ url: databaseUrl() });
    await connection.open();
    try {
      const asked: string[] = [];
      const counted: Connection = Object.create(connection, {
        rows: { value: (...of: Parameters<Connection["rows"]>) => (asked.push(of[0]), connection.rows(...of)) },
      });
      const lanes = createLaneTable(counted, `"${store.schema}"`, () => performance.now());
      const batch = Array.from({ length: 1_000 }, (_, i) => ({
        topic: PLAIN,
        tenantId: `t${i}`,
        priority: 0,
        orderingKey: null,
      }));
      const made = await lanes.of([...batch, ...batch]);
      expect(new Set(made.map(({ id }) => id)).size).toBe(1_000);
      expect(made[1_007]?.tenant).toBe("t7");
      expect(asked).toEqual(["read topics", "find lanes", "make lanes", "find lanes"]);
      expect(batch.every((one) => lanes.known(one) !== undefined)).toBe(true);
    } finally {
      await connection.close();
      await store.close();
      await dropSchema(store.schema);
    }
  });

  it("1,000 new tenants cost the same beside thousands that came just before, and so do their siblings", async () => {
    const store = await openStore();
    await store.topics.put(definition(PLAIN), "code");
    const connection = createConnection({ url: databaseUrl() });
    await connection.open();
    try {
      const lanes = createLaneTable(connection, `"${store.schema}"`, () => performance.now());
      const took: number[] = [];
      for (let batch = 0; batch < 8; batch++) {
        const began = performance.now();
        const made = await lanes.of(
          Array.from({ length: 1_000 }, (_, i) => ({ topic: PLAIN, tenantId: `${batch}-${i}`, priority: 0, orderingKey: null })),
        );
        const siblings = await lanes.siblings(made.map((lane) => ({ lane, suspicion: 0, retried: true })));
        expect(siblings.every(({ kind, tenant }, i) => kind === 4 && tenant === made[i]?.tenant)).toBe(true);
        took.push(performance.now() - began);
      }
      // Where each thousand pays for those before it, the second half takes several times as long as the first.
      expect(Math.min(...took.slice(4))).toBeLessThan(4 * Math.min(...took.slice(0, 4)));
    } finally {
      await connection.close();
      await store.close();
      await dropSchema(store.schema);
    }
  }, 120_000);

  it("lanes of a topic that stands still hide nobody: who is served stays known and is offered each time", () => {
    const topics = new Map<string, TopicState>();
    const topicOf = (name: string): TopicState => {
      const still = name !== "t/good";
      const state = topics.get(name) ?? {
        ...createTopicState(name, true, { holds: false } as never),
        ...(still ? { allowance: 0, shutUntilMs: 1_000 } : { allowance: 10 }),
      };
      topics.set(name, state);
      return state;
    };
    const table = new LaneTable(topicOf);
    const lane = (name: string, topic: string): Lane => {
      const rest = { priority: 0, suspicion: 0, retried: false, ordered: false, dueInMs: -1 } as const;
      return { lane: name, topic, tenantId: name, ...rest };
    };
    const good = lane("good", "t/good");
    table.seen([good], 1, table.mark, { first: true, last: false });
    for (let part = 0, ms = 2; part < 10; part++, ms += 2) {
      const some = Array.from({ length: 1_000 }, (_, i) => lane(`${part}-${i}`, "t/still"));
      table.seen(some, ms, table.mark, { first: false, last: false });
      const offered = table.ready(ms);
      expect(offered.filter((one) => one.lane === "good")).toHaveLength(1);
      for (const one of offered) if (one.lane === "good") one.servedMs = ms;
    }
  });

  it("however many lanes are due, one plan is offered a bounded number, of each priority and kind, and none is left out for long", () => {
    const topics = new Map<string, TopicState>();
    const topicOf = (name: string): TopicState => {
      const state = topics.get(name) ?? { ...createTopicState(name, true, { holds: false } as never), allowance: 10 };
      topics.set(name, state);
      return state;
    };
    const table = new LaneTable(topicOf);
    const some = (name: string, count: number, more: Partial<Lane> = {}) =>
      Array.from({ length: count }, (_, i): Lane => {
        const rest = { priority: 0, suspicion: 0, retried: false, ordered: false, dueInMs: -1 } as const;
        return { lane: `${name}${i}`, topic: `t/${name}`, tenantId: `tenant-${i}`, ...rest, ...more };
      });
    const many = some("many", 1_500);
    table.seen(
      [...many, ...some("urgent", 3, { priority: 9 }), ...some("again", 2, { retried: true }), ...some("late", 1)],
      1,
      table.mark,
    );
    const seen = new Map<string, number>();
    for (let ms = 2; ms < 10; ms++) {
      const offered = table.ready(ms);
      expect(offered.length).toBeLessThanOrEqual(300);
      expect(offered.filter(({ priority }) => priority === 9)).toHaveLength(3);
      expect(offered.filter(({ retried }) => retried)).toHaveLength(2);
      for (const { lane } of offered) seen.set(lane, (seen.get(lane) ?? 0) + 1);
    }
    // Nothing was given to anybody: those that were offered made way all the same.
    expect([...many, ...some("late", 1)].every(({ lane }) => (seen.get(lane) ?? 0) >= 1)).toBe(true);
  });

  it("a worker knows a bounded number of lanes at once, and every one of 5,000 has its turn", () => {
    const topics = new Map<string, TopicState>();
    const topicOf = (name: string): TopicState => {
      const state = topics.get(name) ?? { ...createTopicState(name, true, { holds: false } as never), allowance: 10 };
      topics.set(name, state);
      return state;
    };
    const table = new LaneTable(topicOf);
    const all = Array.from({ length: 5_000 }, (_, i): Lane => {
      const lane = String(i).padStart(5, "0");
      const rest = { priority: 0, suspicion: 0, retried: false, ordered: false, dueInMs: -1 } as const;
      return { lane, topic: `t/${i % 10}`, tenantId: `tenant-${i}`, ...rest };
    });
    const served = new Set<string>();
    let at = 0;
    for (let look = 0, ms = 0; look < 60; look++) {
      const limit = Math.min(1_000, table.room(++ms));
      const part = all.slice(at, at + limit);
      const last = part.length < limit;
      table.seen(part, ms, table.mark, { first: at === 0, last });
      at = last ? 0 : at + limit;
      const ready = table.ready(++ms).sort((a, b) => Math.max(0, a.servedMs) - Math.max(0, b.servedMs));
      expect(ready.length).toBeLessThanOrEqual(2_000);
      for (const entry of ready.slice(0, 200)) {
        entry.servedMs = ms;
        served.add(entry.lane);
      }
    }
    expect(served.size).toBe(5_000);
    const tenants = [...topics.values()].reduce((sum, { tenants: known }) => sum + known.size, 0);
    expect(tenants).toBeLessThanOrEqual(2_000);
    // A whole round that names none of them: nothing is left to claim.
    table.seen([], 1_000, table.mark);
    expect(table.ready(1_001)).toEqual([]);
  });
});
