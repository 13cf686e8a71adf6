/**
 * Fault 8: a worker with 128 MB of heap and a backlog of messages of 1 MB each, several times as much as it may hold: 400, or 1,000 with
 * MAKEGOOD_SOAK=1. What it holds is bounded by bytes, not only by number, so it neither dies nor grows with the backlog.
 */
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { residentMb, startWorker } from "../support/processes.ts";
import { scene } from "./scene.ts";

const MESSAGES = process.env.MAKEGOOD_SOAK === "1" ? 1_000 : 400;
vi.setConfig({ testTimeout: 120_000 });

it(`fault 8: --max-old-space-size=128 and a backlog of ${MESSAGES} x 1 MB`, async () => {
  await using fault = await scene({ topics: [topic("big/one", { leaseMs: 60_000 })] });
  // Made inside the server, in eight sessions' worth of pieces: a gigabyte need not travel twice.
  const sql = `select count(e.id) from generate_series(1, $1::int) g cross join lateral
    "${fault.schema}".enqueue('big/one', '"' || repeat('0123456789', 104000) || g || '"', 'big-' || $2::text || '-' || g) e`;
  await Promise.all([0, 1, 2, 3].map((part) => fault.sql(sql, [MESSAGES / 4, part])));
  expect(await fault.counts()).toMatchObject({ pending: MESSAGES });

  const { url, schema } = fault;
  const topics = [{ name: "big/one", handler: "sleep", leaseMs: 60_000 }];
  const worker = await startWorker({ url, schema, topics, concurrency: 50 }, ["--max-old-space-size=128"]);
  let mostMb = 0;
  while (!worker.over && (await fault.counts()).delivered < MESSAGES) {
    mostMb = Math.max(mostMb, await residentMb(worker.pid));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const { type } = worker.facts.at(-1) ?? {};
  expect({ over: worker.over, type, stderr: worker.stderr() }).toMatchObject({ over: false, stderr: "" });
  process.stdout.write(`fault 8: at most ${Math.round(mostMb)} MB resident\n`);
  expect(mostMb).toBeLessThan(450);
  expect(await worker.end("SIGTERM")).toMatchObject({ code: 0 });
  expect(await fault.counts()).toEqual({ pending: 0, processing: 0, delivered: MESSAGES, dead: 0 });
});
