/**
 * A fallback or a compensation that is a function or a sink object of a process: its topic is declared with the topic, and what is sent
 * there arrives here.
 */
import { expect, it } from "vitest";
import { createMakegood, topic } from "../../../src/index.ts";
import { carrierTopicName } from "../../../src/recovery/carrier.ts";
import type { Sink } from "../../../src/sink/sink.ts";
import { createMemoryStore } from "../../../src/store/memory/memory-store.ts";
import { until } from "../../support/processes.ts";

it("functions and sink objects carry, configurations stay data", async () => {
  const seen: unknown[] = [];
  let closed = 0;
  const undo: Sink = {
    kind: "function",
    async deliver({ payload }) {
      seen.push(`undo ${payload}`);
      return { kind: "delivered" };
    },
    async close() {
      closed++;
    },
  };
  const charge = topic<{ n: number }>("billing/charge", {
    sink: { kind: "http", url: "https://example.com/" },
    fallback: ({ n }) => void seen.push(`fallback ${n}`),
    compensation: undo,
    retry: { attemptsMax: 4 },
  });
  const plain = topic("billing/plain", { sink: () => {}, fallback: { kind: "http", url: "https://example.com/other" } });
  expect(plain.definition.fallback).toEqual({ kind: "http", url: "https://example.com/other", trusted: true });
  // @ts-expect-error what the types refuse is refused at run time too
  const bad = topic("billing/bad", { sink: () => {}, fallback: { kind: "http" } });
  await expect(createMakegood({ store: createMemoryStore(), topics: [bad] })).rejects.toThrow(
    "fallback: an http sink needs a url",
  );

  const mg = await createMakegood({ store: createMemoryStore(), topics: [charge, plain], pollMs: 20 });
  const [fallback, compensation] = [carrierTopicName("fallback", charge.name), carrierTopicName("compensation", charge.name)];
  expect(await mg.store.topics.get(fallback)).toMatchObject({
    source: "code",
    sink: { kind: "function" },
    retry: { attemptsMax: 4 },
  });
  expect(await mg.store.topics.get(carrierTopicName("fallback", plain.name)), "put when it is needed").toBeNull();
  mg.work();
  await mg.enqueue(fallback, { n: 7 });
  await mg.enqueue(compensation, { n: 8 });
  await until("both have arrived", () => seen.length === 2);
  expect(new Set(seen)).toEqual(new Set(["fallback 7", 'undo {"n":8}']));
  await mg.close({ drainMs: 100 });
  expect(closed).toBe(1);
});
