/**
 * Faults 10 to 12 at random: any statement of a caller or of two workers, whatever it does, loses its request or its reply with a
 * small probability, over and over. Whatever was lost, every accepted message is delivered, settled once and counted right.
 * FAULT_SEED repeats a run.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { createMakegood, topic } from "../../src/index.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { outOfOrder, runSeed, seeded } from "../support/history.ts";
import { databaseUrl } from "../support/postgres.ts";
import { startReceiver } from "../support/receiver.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { scene } from "./scene.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const MESSAGES = soak ? 20_000 : 800;
vi.setConfig({ testTimeout: soak ? 900_000 : 90_000 });

const placeOf = (body: string) => {
  const { orderingKey, n } = JSON.parse(body) as { orderingKey: string | null; n: number };
  return orderingKey === null ? null : { key: orderingKey, n };
};

it("faults 10 to 12: random losses of requests and replies of any statement", async () => {
  const random = seeded(runSeed("random cuts"));
  await using proxy = await startProxy(targetOf(databaseUrl()));
  await using receiver = await startReceiver(() => ({ status: random() < 0.1 ? 503 : 200, afterMs: Math.floor(random() * 10) }));
  const sink = { kind: "http" as const, url: receiver.url };
  const retry = { attemptsMax: 30, baseMs: 20, maxMs: 100 };
  const declared = topic("cut/any", { sink, leaseMs: 1_500, timeoutMs: 1_000, retry });
  await using fault = await scene({ topics: [declared], via: (url) => proxy.via(url), concurrency: 10 });
  const url = proxy.via(fault.url);
  await using other = await createMakegood({
    store: createPostgresStore({ url, schema: fault.schema }),
    topics: [declared],
    concurrency: 10,
    pollMs: 200,
  });
  const chance = () => random() < 0.01;
  const times = Number.POSITIVE_INFINITY;
  const cuts = (["lose-reply", "lose-request"] as const).map((act) => proxy.rule({ match: /\0/, act, chance, times }));
  fault.mg.work();
  other.work();

  const callers = Array.from({ length: 4 }, async (_, caller) => {
    for (let n = 0; n < MESSAGES / 4; n++) {
      const key = `c${caller}-${n}`;
      // Some are one of a batch, some are in order, some are plain.
      const orderingKey = n % 3 === 0 ? `o${caller}-${n % 2}` : null;
      const payload = { orderingKey, n };
      const call =
        n % 5 === 0
          ? fault.mg.enqueueMany("cut/any", [
              { payload, key, orderingKey },
              { payload, key: `${key}-b` },
            ])
          : fault.mg.enqueue("cut/any", payload, { key, orderingKey });
      const names = n % 5 === 0 ? [key, `${key}-b`] : [key];
      await call.then(
        () => names.map((name) => fault.history.ok(name, JSON.stringify(payload))),
        () => names.map((name) => fault.history.unknown(name, JSON.stringify(payload))),
      );
      if (n % 10 === 0) await sleep(20);
    }
  });
  await Promise.all(callers);
  await fault.settled(300_000);
  const struck = cuts.map(({ count }) => count());
  const unknown = fault.history.names("unknown").length;
  process.stdout.write(
    `random cuts: ${struck[0]} replies and ${struck[1]} requests lost, ${unknown} of ${fault.history.size} unknown\n`,
  );
  expect(Math.min(...struck)).toBeGreaterThan(3);
  expect(await fault.check({ receiver, attemptsMax: 30 })).toEqual([]);
  const inTurn = receiver.arrivals.filter(({ key }) => !key.endsWith("-b"));
  expect(outOfOrder(inTurn, placeOf)).toEqual([]);
});
