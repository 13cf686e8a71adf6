/**
 * Ingest while the database goes away and comes back: a refusal is a 503 that may be asked again, a repeat under the same key is never
 * counted twice, and nothing that was answered with yes is missing afterwards.
 */
import { expect, it } from "vitest";
import { sleep, systemClock } from "../../src/platform/clock.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { startProxy, targetOf } from "../support/tcp-proxy.ts";
import { type RecoveryServer, startRecoveryServer } from "./recovery-support.ts";

const REPORTS = 60;

async function reportUntilTaken(scene: RecoveryServer, n: number, statuses: number[]): Promise<void> {
  const body = {
    idempotency_key: `outage-${n}`,
    failure_payload: { error_type: "TIMEOUT", raw: `no answer for order ${n}`, topic: "out/age" },
  };
  for (;;) {
    const { status, headers } = await scene.as("alice", "POST", "/api/v1/recovery/ingest", body);
    statuses.push(status);
    if (status === 200 || status === 201) return;
    expect([503, headers.get("retry-after") === null]).toEqual([status, false]);
    await sleep(systemClock, 50);
  }
}

it("DR-26, DR-35: nothing is lost and nothing is counted twice while the database restarts", async () => {
  const schema = freshSchema();
  await using proxy = await startProxy(targetOf(databaseUrl()));
  const url = proxy.via(databaseUrl());
  const store = createPostgresStore({ url, schema, connectTimeoutMs: 500, queryTimeoutMs: 2_000 });
  const scene = await startRecoveryServer({}, { store });
  try {
    const statuses: number[] = [];
    const reports = Array.from({ length: REPORTS }, async (_, n) => {
      await sleep(systemClock, n * 15);
      await reportUntilTaken(scene, n, statuses);
    });
    await sleep(systemClock, 150);
    // A reply that is lost after the commit: the caller cannot know, and asks again.
    const lost = proxy.rule({ match: /recovery_occurrence/, act: "lose-reply" });
    await sleep(systemClock, 150);
    proxy.refuse();
    proxy.resetAll();
    await sleep(systemClock, 400);
    proxy.heal();
    await Promise.all(reports);
    expect(statuses).toContain(503);
    const { body } = await scene.as("alice", "GET", "/api/v1/recovery/groups?topic=out/age");
    expect(body.data).toMatchObject([{ occurrence_count: REPORTS }]);
    expect([lost.count(), statuses.filter((status) => status < 300).length]).toEqual([1, REPORTS]);
  } finally {
    await scene.close();
    await dropSchema(schema);
  }
}, 60_000);
