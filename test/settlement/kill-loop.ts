/**
 * A loop of settlement clients that are killed with SIGKILL, each at another step, on a store that outlives them. After every kill: what was
 * told stays true. In the end: each reservation was settled once, at its cost, and nothing needs a hand.
 */
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { FinalizeRequest } from "../../src/presets/settlement/request.ts";
import { startableDist } from "../support/build.ts";
import { seeded } from "../support/history.ts";
import { AUDIENCE, type Billing, type Call, ISSUER, type Reply, SECRET } from "./billing.ts";
import { request } from "./scene.ts";

const CHILD = join(dirname(fileURLToPath(import.meta.url)), "client-child.mjs");

export interface Step {
  readonly at: string;
  /** The store refuses everything: what comes goes below. */
  readonly away?: boolean;
  /** Nothing new is asked for: the child finds what others have left. */
  readonly idle?: boolean;
  /** The how-manyth time, perhaps by the number of requests; the first unless said. */
  readonly nth?: number | ((requests: number) => number);
}

export interface KillLoop {
  readonly billing: Billing;
  readonly steps: readonly Step[];
  readonly seed: number;
  /** Which store, and where. */
  readonly child: Readonly<Record<string, unknown>>;
  /** Whether an obligation can be read back, by another than the client. */
  kept(reservationId: string): Promise<boolean>;
  /** Between two children: waits and leases come to their end. */
  timePasses(): Promise<void>;
}

interface Told {
  readonly signal: NodeJS.Signals | null;
  readonly results: ReadonlyMap<string, string>;
  readonly size: number | null;
}

export const step = (at: string, how: Omit<Step, "at"> = {}): Step => ({ at, ...how });
const LEASES_MS = 15 * 60_000;

export async function killLoop({ billing, steps, seed, child, kept, timePasses }: KillLoop): Promise<void> {
  const random = seeded(seed);
  const all: FinalizeRequest[] = [];
  const told = new Map<string, string>();
  const missed: string[] = [];
  let aheadMs = 0;

  const untold = (): FinalizeRequest[] => all.filter(({ reservation_id }) => !told.has(reservation_id));
  const run = async (killAt: Step | null): Promise<Told> => {
    // Leases of a minute and waits of up to ten are over for the next child.
    aheadMs += LEASES_MS;
    await timePasses();
    // What an upstream does that got no answer: it asks again.
    const requests = killAt?.idle ? [] : untold();
    const { at = null, nth = 1, away = false } = killAt ?? {};
    const how = { killAt: at, nth: typeof nth === "number" ? nth : nth(requests.length), away };
    return runChild({ ...child, ...how, requests, aheadMs, billingUrl: billing.url, lingerMs: 20_000 });
  };

  for (const one of steps) {
    const waits = request({ actual_cost_micro: String(1_000 + all.length) });
    if (!one.idle) all.push(waits, request({ actual_cost_micro: "0" }));
    billing.answer(answers(one, waits.reservation_id, random));
    const { signal, results } = await run(one);
    if (signal !== "SIGKILL") missed.push(`${one.at}${one.away ? " (away)" : ""}`);
    for (const [id, status] of results) told.set(id, status);
    for (const [id, status] of told) {
      const settled = billing.ledger.has(id);
      const readable = settled || (await kept(id));
      expect({ seed, killedAt: one.at, id, status, readable }).toMatchObject({ readable: true });
      if (status !== "dlq") expect({ seed, killedAt: one.at, id, status, settled }).toMatchObject({ settled: true });
    }
  }
  // A step that no child reached was not tested.
  expect({ seed, missed }).toEqual({ seed, missed: [] });
  // Nor would a loop show anything in which no promise was made before a kill.
  expect([...told.values()]).toContain("dlq");
  billing.answer("honest");
  const last = await run(null);
  expect({ seed, signal: last.signal, size: last.size }).toEqual({ seed, signal: null, size: 0 });
  const seen = all.map(({ reservation_id: id }) => [id, billing.ledger.get(id)?.amount, billing.effectsOf(id)]);
  expect(seen).toEqual(all.map(({ reservation_id: id, actual_cost_micro }) => [id, actual_cost_micro, 1]));
}

/** `waits` is refused at first, so that there is something to keep and to replay; what a step needs to be reached is answered, the rest is chance. */
function answers({ at, away }: Step, waits: string, random: () => number): (call: Call, nth: number) => Reply {
  return ({ reservationId }, nth) => {
    if (nth === 1) return reservationId === waits || away ? { status: 503 } : random() < 0.5 ? "honest" : "act-and-reset";
    if (at.startsWith("delete") || at.startsWith("settle")) return "honest";
    if (at.startsWith("increment") || at.startsWith("release")) return { status: 503 };
    return random() < 0.6 ? "honest" : { status: 503 };
  };
}

async function runChild(options: object): Promise<Told> {
  const token = { secret: SECRET, issuer: ISSUER, audience: AUDIENCE };
  const given = { dist: await startableDist(), token, maxRetries: 1_000, timeoutMs: 1_000, ...options };
  const child = spawn(process.execPath, [CHILD, JSON.stringify(given)], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return new Promise((resolve) => {
    child.once("close", (_code, signal) => {
      const facts = text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { type: string; id: string; status: string; survives?: string; size: number | null });
      // On a machine that is too busy a store may answer too late: what is in memory then promises nothing, and says so.
      const promised = facts.filter(({ type, survives }) => type === "result" && survives !== "nothing");
      const results = new Map(promised.map(({ id, status }) => [id, status]));
      resolve({ signal, results, size: facts.find(({ type }) => type === "done")?.size ?? null });
    });
  });
}
