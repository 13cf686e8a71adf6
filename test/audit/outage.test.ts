/**
 * CON-12: the audit service is away for seven days, which pass in leaps, for the kernel's own worker and for the store alike. Whatever is due
 * after a leap the worker claims, tries and settles; no attempt is spent, nothing dies, and everything is stored afterwards.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { createMakegood } from "../../src/create.ts";
import { MakegoodError } from "../../src/message/errors.ts";
import { type Clock, systemClock, type Timer } from "../../src/platform/clock.ts";
import { senderSinks, senderTopics } from "../../src/presets/audit/sender.ts";
import { auditTopics } from "../../src/presets/audit/topics.ts";
import { createMemoryAudit } from "../../src/store/memory/audit.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import type { AnyTopic } from "../../src/topic/topic.ts";
import { freePort } from "../support/free-port.ts";
import { dropSchema, openStore } from "../support/postgres.ts";
import { envelope } from "./records.ts";

const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;
/** Twice a day. */
const LEAPS = 14;
/** Fewer than a breaker needs: nothing but the outcome itself keeps them from being charged. */
const RECORDS = 4;

/** The system's time, with leaps: what would have run meanwhile runs at once. */
function leapingClock(): Clock & { leap(ms: number): void } {
  const timers = new Map<Timer, { dueMs: number; run: () => void }>();
  let ahead = 0;
  const monotonicMs = (): number => systemClock.monotonicMs() + ahead;
  return {
    monotonicMs,
    wallMs: () => systemClock.wallMs() + ahead,
    after(ms, run, background) {
      const fire = (): void => {
        handle.cancel();
        run();
      };
      const real = systemClock.after(ms, fire, background);
      const handle: Timer = {
        cancel() {
          real.cancel();
          timers.delete(handle);
        },
      };
      timers.set(handle, { dueMs: monotonicMs() + ms, run: fire });
      return handle;
    },
    leap(ms) {
      ahead += ms;
      for (const { dueMs, run } of [...timers.values()]) if (dueMs <= monotonicMs()) run();
    },
  };
}

/** Where each verb takes its `now`; a number is a place of its own, `in` the request. */
const PLACES: Readonly<Record<string, number | "in">> = {
  ...{ lanes: 0, claim: "in", extend: 2, settle: 1, reclaim: "in", get: 1, enqueue: 1, lead: 3, prune: "in" },
  ...{ list: 0, announce: 2, workers: 0, allot: 1, occupy: 3 },
};
const TOPIC_PLACES: Readonly<Record<string, number | "in">> = { ...PLACES, trip: 3, probe: 3, get: 1, list: 0 };

/** The same store, asked as if it were `clock`'s time. */
function atTimeOf<T extends object>(store: T, clock: Clock, places = PLACES): T {
  const get = (target: T, name: string | symbol): unknown => {
    const member: unknown = Reflect.get(target, name);
    if (name === "topics") return atTimeOf(member as object, clock, TOPIC_PLACES);
    if (typeof member !== "function") return member;
    const place = places === PLACES && name === "list" ? undefined : places[String(name)];
    return (...args: unknown[]) => {
      const now = new Date(clock.wallMs());
      const at = place === "in" ? 0 : place;
      if (at !== undefined) args[at] = { ...(args[at] as object | undefined), now };
      return member.apply(target, args);
    };
  };
  return new Proxy(store, { get });
}

interface Service {
  readonly topics: readonly AnyTopic[];
  readonly topic: string;
  back(): unknown;
  stored(): Promise<Set<string>>;
  stop?(): Promise<void>;
}

/** The server's own side: the audit database is away. */
function database(code: "store_unavailable" | "store_full"): () => Promise<Service> {
  return async () => {
    const audit = createMemoryAudit();
    let away = true;
    const write: typeof audit.write = async (record) => {
      if (away) throw new MakegoodError(code, "away");
      return audit.write(record);
    };
    return {
      topics: auditTopics({ ...audit, write }),
      topic: "audit/executions",
      back: () => {
        away = false;
      },
      stored: async () => new Set((await audit.list({ limit: 100 })).records.map(({ payload }) => payload)),
    };
  };
}

/** The producer's side: nobody listens where the service is. */
async function refused(): Promise<Service> {
  const bodies = new Set<string>();
  const server = createServer(async (request, response) => {
    bodies.add(Buffer.concat(await request.toArray()).toString());
    response.writeHead(201).end();
  });
  const listen = async (on: number) => {
    await once(server.listen(on, "127.0.0.1"), "listening");
    return (server.address() as AddressInfo).port;
  };
  const stop = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  const port = await listen(await freePort());
  await stop();
  const url = `http://127.0.0.1:${port}`;
  return {
    topics: senderTopics(senderSinks({ url, timeoutMs: 5_000, clock: systemClock })),
    topic: "audit-write/executions",
    back: () => listen(port),
    stored: async () => bodies,
    stop,
  };
}

const inMemory = async (clock: Clock) => ({ store: createMemoryStore({ clock }) as Store, drop: async () => {} });
const inPostgres = async (clock: Clock) => {
  const store = await openStore();
  return { store: atTimeOf<Store>(store, clock), drop: () => dropSchema(store.schema) };
};

describe("seven days without the audit service", () => {
  it.each([
    ["refused, on memory", refused, inMemory],
    ["database down, on memory", database("store_unavailable"), inMemory],
    ["database full, on memory", database("store_full"), inMemory],
    ["database down, on PostgreSQL", database("store_unavailable"), inPostgres],
  ] as const)(
    "CON-12, DA-4, DA-28: %s: no attempt spent, nothing dead, all stored afterwards",
    async (_, start, open) => {
      const clock = leapingClock();
      const service = await start();
      const { store, drop } = await open(clock);
      const attempted = new Map<string, number>();
      const mg = await createMakegood({ store, topics: service.topics, clock, pollMs: 50, recovery: false });
      mg.events.on((event) => {
        if (event.type === "attempt") attempted.set(event.id, (attempted.get(event.id) ?? 0) + 1);
      });
      const texts = Array.from({ length: RECORDS }, (_, i) => JSON.stringify(envelope(`e-${i}`)));
      const messages = texts.map((payloadText, i) => ({ topic: service.topic, payloadText, key: `e-${i}` }));
      const accepted = await mg.enqueueText(messages);
      mg.work();
      const triedEach = (times: number) =>
        vi.waitFor(() => expect(accepted.map(({ id }) => attempted.get(id) ?? 0)).toSatisfy(atLeast(times)), 20_000);
      await triedEach(1);
      for (let leaps = 1; leaps <= LEAPS; leaps++) {
        clock.leap((7 * DAY) / LEAPS);
        await triedEach(leaps + 1);
      }
      const unspent = { status: "pending", attempts: 0, heldReason: null };
      for (const { id } of accepted) await vi.waitFor(async () => expect(await store.get(id)).toMatchObject(unspent), 20_000);
      await service.back();
      clock.leap(10 * MINUTE);
      await vi.waitFor(async () => expect(await service.stored()).toEqual(new Set(texts)), 20_000);
      await vi.waitFor(async () => expect((await store.counts()).reduce((sum, { count }) => sum + count, 0)).toBe(0), 20_000);
      await mg.close({ drainMs: 1_000 });
      await service.stop?.();
      await drop();
    },
    120_000,
  );
});

const atLeast = (times: number) => (counts: number[]) => counts.every((count) => count >= times);
