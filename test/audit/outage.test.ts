/**
 * CON-12: the audit service is away for seven days. The days pass through the stores' `now`: each half minute whatever is due is
 * claimed, tried and settled as the worker does it. No attempt is spent, nothing dies, and everything is stored afterwards.
 */
import { describe, expect, it } from "vitest";
import { decide } from "../../src/message/decide.ts";
import { MakegoodError } from "../../src/message/errors.ts";
import type { Outcome } from "../../src/message/outcome.ts";
import { retryPolicy } from "../../src/message/retry-policy.ts";
import { auditKind } from "../../src/presets/audit/registry.ts";
import { createService } from "../../src/presets/audit/sender.ts";
import { storeSink } from "../../src/presets/audit/store-sink.ts";
import { auditTopics } from "../../src/presets/audit/topics.ts";
import { outcomeOfWrite } from "../../src/presets/audit/write-outcome.ts";
import { createMemoryAudit } from "../../src/store/memory/audit.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { newMessage } from "../faults/scene.ts";
import { dropSchema, openStore } from "../support/postgres.ts";
import { envelope } from "./records.ts";

const TOPIC = "audit/executions";
const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;
const RULES = { policy: retryPolicy({ policy: "audit" })!, ordering: "key", onUnknown: "retry" } as const;
const COOLDOWN_MS = 30_000;

type Try = (payload: string, key: string) => Promise<Outcome>;

/** One turn of the worker at `ms`: the breaker lets one message through while it is open, all of them otherwise. */
async function turn(store: Store, ms: number, attempt: Try): Promise<{ tried: number; failed: boolean }> {
  const now = new Date(ms);
  const state = (await store.topics.get(TOPIC, { now }))!.breaker.state;
  if (state === "open" && !(await store.topics.probe(TOPIC, "worker", 10_000, { now }))) return { tried: 0, failed: true };
  const lanes = (await store.lanes({ now })).map(({ lane }) => ({ lane, limit: state === "closed" ? 100 : 1 }));
  const claimed = await store.claim({
    owner: "worker",
    leaseMs: 30_000,
    lanes: lanes.slice(0, state === "closed" ? 100 : 1),
    now,
  });
  let failed = false;
  for (const message of claimed) {
    const outcome = await attempt(message.payload, message.key!);
    failed ||= outcome.kind === "retry" || outcome.kind === "unknown";
    const settlement = decide(message, outcome, RULES, 0.5);
    await store.settle([{ id: message.id, claim: message.claim, attempt: message.attempt, durationMs: 1, settlement }], { now });
  }
  if (failed) await store.topics.trip(TOPIC, COOLDOWN_MS, "away", { now });
  else if (claimed.length > 0) await store.topics.reset(TOPIC);
  return { tried: claimed.length, failed };
}

const stores = [
  { name: "memory", every: MINUTE / 2, open: async () => ({ store: createMemoryStore() as Store, drop: async () => {} }) },
  {
    // Each turn is six statements here: once an hour still is 168 tries.
    name: "postgres",
    every: 60 * MINUTE,
    open: async () => {
      const store = await openStore();
      return { store: store as Store, drop: () => dropSchema(store.schema) };
    },
  },
];

const service = createService();
const AWAY: readonly (readonly [string, Try])[] = [
  ["refused", async (_, key) => service.judge(key, { kind: "retry", code: "connection_refused", error: "x" })],
  ["database down", async () => outcomeOfWrite(new MakegoodError("store_unavailable", "x"))],
  ["database full", async () => outcomeOfWrite(new MakegoodError("store_full", "x"))],
];

describe.each(stores)("seven days without the audit service, on $name", ({ open, every }) => {
  it.each(AWAY)(
    "CON-12, DA-4, DA-28: %s: no attempt spent, nothing dead, all stored afterwards",
    async (_, away) => {
      const { store, drop } = await open();
      await store.open();
      const audit = createMemoryAudit();
      for (const { definition } of auditTopics(audit)) await store.topics.put(definition, "code");
      const startMs = Date.now();
      const texts = Array.from({ length: 30 }, (_, i) => JSON.stringify(envelope(`e-${i}`)));
      const messages = texts.map((text, i) => newMessage(TOPIC, `e-${i}`, text));
      await store.enqueue(messages, { now: new Date(startMs) });

      let tries = 0;
      let ms = startMs;
      for (; ms < startMs + 7 * DAY; ms += every) tries += (await turn(store, ms, away)).tried;
      expect(tries).toBeGreaterThan(150);
      for (const { id } of messages) {
        expect(await store.get(id)).toMatchObject({ status: "pending", attempts: 0, heldReason: null });
      }

      const sink = storeSink(audit, auditKind("executions")!);
      const context = { signal: new AbortController().signal, timeoutMs: 1_000 };
      const back: Try = async (payload) => sink.deliver({ payload } as Parameters<typeof sink.deliver>[0], context);
      const endMs = ms + 10 * MINUTE;
      for (; ms < endMs; ms += MINUTE / 2) await turn(store, ms, back);
      expect(new Set((await audit.list({ limit: 100 })).map(({ payload }) => payload))).toEqual(new Set(texts));
      expect((await store.counts()).reduce((sum, { count }) => sum + count, 0)).toBe(0);
      await store.close();
      await drop();
    },
    60_000,
  );
});
