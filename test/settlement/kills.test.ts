/**
 * Our process killed with SIGKILL at each step of finalize and of a replay, in a loop with a seed, on a real Redis (DF-35): whatever was
 * told stays true, and in the end each reservation was settled once, at its cost.
 */
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FinalizeRequest } from "../../src/presets/settlement/request.ts";
import { createRedisDLQStore } from "../../src/store/redis/dlq-port/redis-dlq-store.ts";
import { builtDist } from "../support/build.ts";
import { AUDIENCE, type Billing, type Call, ISSUER, type Reply, SECRET, startBilling } from "./billing.ts";
import { type RedisServer, startRedis } from "./redis.ts";
import { request } from "./scene.ts";

const CHILD = join(dirname(fileURLToPath(import.meta.url)), "client-child.mjs");
const SEED = Number(process.env.MAKEGOOD_SEED ?? 20_261_116);

let redis: RedisServer;
let billing: Billing;
let dist = "";
beforeAll(async () => {
  [redis, billing, dist] = await Promise.all([startRedis(), startBilling(), builtDist()]);
});
afterAll(async () => {
  await billing[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

/** Mulberry32: small, and the same everywhere. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Told {
  readonly signal: NodeJS.Signals | null;
  readonly results: Map<string, string>;
  readonly size: number | null;
}

function runChild(options: object): Promise<Told> {
  const common = { dist, redisPort: redis.port, billingUrl: billing.url, maxRetries: 1_000, timeoutMs: 500 };
  const token = { secret: SECRET, issuer: ISSUER, audience: AUDIENCE };
  const child = spawn(process.execPath, [CHILD, JSON.stringify({ ...common, token, ...options })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return new Promise((resolve) => {
    child.once("close", (_code, signal) => {
      const facts = text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { type: string; id: string; status: string; size: number });
      const results = new Map(facts.filter(({ type }) => type === "result").map(({ id, status }) => [id, status]));
      resolve({ signal, results, size: facts.find(({ type }) => type === "done")?.size ?? null });
    });
  });
}

const FINALIZE = ["sign:before", "sign:after", "send:during", "put:before", "put:during", "put:after"];
const REPLAY = ["getReady:before", "getReady:after", "claimForReplay:before", "claimForReplay:during", "claimForReplay:after"];
const WRITE = [
  "delete:before",
  "delete:during",
  "delete:after",
  "incrementAttempt:during",
  "incrementAttempt:after",
  "releaseClaim:during",
];

describe("killed at each step", () => {
  it(`DF-35: nothing that was told is lost, and each reservation is settled once (seed ${SEED})`, async () => {
    const random = seeded(SEED);
    /** `waits` is refused at first, so that there is something to put and to replay; what a step needs to be reached is answered, the rest is chance. */
    const answerFor =
      (killAt: string, waits: string) =>
      ({ reservationId }: Call, nth: number): Reply => {
        if (nth === 1) return reservationId === waits ? { status: 503 } : random() < 0.5 ? "honest" : "act-and-reset";
        if (killAt.startsWith("delete")) return "honest";
        if (killAt.startsWith("increment") || killAt.startsWith("release")) return { status: 503 };
        return random() < 0.6 ? "honest" : { status: 503 };
      };
    const all: FinalizeRequest[] = [];
    const told = new Map<string, string>();
    const store = createRedisDLQStore(redis.connect());
    const killed = new Set<string>();
    let aheadMs = 0;
    const loop = [...FINALIZE, ...REPLAY, ...WRITE];
    for (const killAt of loop) {
      // What an upstream does that got no answer: it asks again. And two new ones.
      const waits = request({ actual_cost_micro: String(1_000 + all.length) });
      all.push(waits, request({ actual_cost_micro: "0" }));
      const requests = all.filter(({ reservation_id }) => !told.has(reservation_id));
      billing.answer(answerFor(killAt, waits.reservation_id));
      // Leases of 60 s and waits of up to ten minutes are over for the next child.
      aheadMs += 15 * 60_000;
      const nth = killAt.startsWith("s") && killAt !== "send:during" ? 1 + Math.floor(random() * 2) : 1;
      const child = await runChild({ requests, passes: 2, killAt, nth, aheadMs });
      for (const [id, status] of child.results) told.set(id, status);
      if (child.signal === "SIGKILL") killed.add(killAt);
      for (const [id, status] of told) {
        const kept = billing.ledger.has(id) || (await store.get(id)) !== null;
        expect({ killAt, id, status, kept }).toMatchObject({ kept: true });
        if (status !== "dlq") expect({ killAt, id, settled: billing.ledger.has(id) }).toMatchObject({ settled: true });
      }
    }
    billing.answer("honest");
    aheadMs += 15 * 60_000;
    expect(loop.filter((step) => !killed.has(step))).toEqual([]);
    const requests = all.filter(({ reservation_id }) => !told.has(reservation_id));
    const last = await runChild({ requests, passes: 3, killAt: "never", aheadMs });
    expect(last).toMatchObject({ signal: null, size: 0 });
    const seen = all.map(({ reservation_id: id }) => [id, billing.ledger.get(id)?.amount, billing.effectsOf(id)]);
    expect(seen).toEqual(all.map(({ reservation_id: id, actual_cost_micro }) => [id, actual_cost_micro, 1]));
  }, 120_000);
});
