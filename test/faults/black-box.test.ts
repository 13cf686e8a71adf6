/**
 * The black-box check: `makegood serve` on its embedded store, driven over HTTP alone and killed by SIGKILL at random moments.
 * Every message that was accepted with a 2xx arrives with identical bytes, an idempotent receiver has one effect per key, and
 * nothing is stuck. FAULT_SEED repeats a run; MAKEGOOD_SOAK=1 makes it the long version.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it, vi } from "vitest";
import { postmasterOf, runs } from "../support/embedded-child.ts";
import { runSeed, seeded } from "../support/history.ts";
import { type Process, startCli, until, workspace } from "../support/processes.ts";
import { type Arrival, sha256, startReceiver } from "../support/receiver.ts";

const soak = process.env.MAKEGOOD_SOAK === "1";
const KILLS = soak ? 50 : 3;
const CLIENTS = 4;
vi.setConfig({ testTimeout: soak ? 900_000 : 180_000 });

let dataDir = "";
/** A serve that was killed leaves its server to the next one; after a failed run there is none. */
afterAll(async () => {
  const pid = await postmasterOf(dataDir);
  if (pid === undefined) return;
  process.kill(pid, "SIGQUIT");
  await until("the server ends", async () => !(await runs(pid)));
});

const json = { "content-type": "application/json" };

it("black box: serve is killed by SIGKILL at random moments: accepted = received, one effect per key, nothing stuck", async () => {
  const random = seeded(runSeed("black box"));
  const cwd = await workspace();
  await using receiver = await startReceiver(() => ({ status: random() < 0.05 ? 503 : 200, afterMs: Math.floor(random() * 30) }));
  dataDir = join(cwd, "data");
  const env = { MAKEGOOD_DATA_DIR: dataDir, MAKEGOOD_PORT: "0", MAKEGOOD_POLL_MS: "200" };
  let base = "";
  const start = async (): Promise<Process> => {
    const server = await startCli(["serve"], env, cwd);
    base = String((await server.fact(({ message }) => message === "listening")).url);
    return server;
  };
  let server = await start();
  const definition = {
    sink: { kind: "http", url: receiver.url, timeout_ms: 1_500 },
    retry: { policy: "exponential", attempts_max: 50, base_ms: 50, max_ms: 500 },
    lease_ms: 2_000,
  };
  const put = await fetch(`${base}/api/v1/topics/black/box`, { method: "PUT", headers: json, body: JSON.stringify(definition) });
  expect([200, 201]).toContain(put.status);

  /** Accepted messages by key: what was sent and the id that came back. */
  const accepted = new Map<string, { sha256: string; id: string }>();
  const enough = new AbortController();
  let asked = 0;
  let unanswered = 0;
  const client = async (name: number): Promise<void> => {
    for (let n = 0; !enough.signal.aborted; n++) {
      const key = `client-${name}-${n}`;
      const payload = `{"client":${name},"n":${n},"big":${"9".repeat(20)},"text":"${"é\\u0041 ".repeat(Math.floor(random() * 40))}"}`;
      // The same request until it is answered, as a careful client does it.
      for (let tries = 0; ; tries++) {
        asked++;
        const answer = await fetch(`${base}/api/v1/messages`, {
          method: "POST",
          headers: json,
          body: `{"topic":"black/box","key":"${key}","payload":${payload}}`,
        }).catch(() => null);
        if (answer?.ok) {
          accepted.set(key, { sha256: sha256(payload), id: ((await answer.json()) as { id: string }).id });
          break;
        }
        unanswered++;
        // Some give up: their message may be there or not.
        if (tries > 0 && random() < 0.2) break;
        await sleep(100);
      }
      await sleep(random() * 20);
    }
  };
  const clients = Array.from({ length: CLIENTS }, (_, name) => client(name));
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(500 + random() * 2_000);
    expect({ kill, over: server.over, stderr: server.stderr() }).toEqual({ kill, over: false, stderr: "" });
    await server.end("SIGKILL");
    if (random() < 0.5) await sleep(random() * 500);
    server = await start();
  }
  await sleep(500);
  enough.abort();
  await Promise.all(clients);

  // One by one: two lists, read one after the other, could both miss a message that moves between them.
  const open = new Map([...accepted].map(([key, { id }]) => [id, key]));
  const settled = async (): Promise<boolean> => {
    if (server.over) throw new Error(`serve ended by itself: ${JSON.stringify(server.facts.slice(-8))} ${server.stderr()}`);
    while (open.size > 0) {
      const some = [...open.keys()].slice(0, 20);
      const asked = some.map(async (id) => (await (await fetch(`${base}/api/v1/messages/${id}`)).json()) as { status: string });
      const statuses = await Promise.all(asked);
      for (const [i, { status }] of statuses.entries()) if (status === "delivered") open.delete(some[i] ?? "");
      if (statuses.some(({ status }) => status !== "delivered")) return false;
    }
    return true;
  };
  await until("every accepted message is delivered", settled, 60_000);
  const dead = (await (await fetch(`${base}/api/v1/messages?status=dead`)).json()) as { data: unknown[] };
  expect(dead.data).toEqual([]);

  process.stdout.write(
    `black box: ${accepted.size} accepted, ${asked} asked, ${unanswered} unanswered, ${receiver.arrivals.length} received\n`,
  );
  expect(accepted.size).toBeGreaterThan(KILLS * 20);
  const arrivals = new Map<string, Arrival[]>();
  for (const one of receiver.arrivals) arrivals.set(one.key, [...(arrivals.get(one.key) ?? []), one]);
  for (const [key, { sha256: sent, id }] of accepted) {
    const mine = arrivals.get(key) ?? [];
    expect({ key, arrived: mine.length > 0 }).toEqual({ key, arrived: true });
    expect({ key, ids: new Set(mine.map((one) => one.id)) }).toEqual({ key, ids: new Set([id]) });
    expect({ key, bodies: new Set(mine.map((one) => one.sha256)) }).toEqual({ key, bodies: new Set([sent]) });
    expect({ key, effects: mine.filter(({ effect }) => effect).length }).toEqual({ key, effects: 1 });
  }
  // A key that no client was told of is one that gave up; it is whole all the same.
  for (const [key, mine] of arrivals) expect({ key, ids: new Set(mine.map(({ id }) => id)).size }).toEqual({ key, ids: 1 });
  expect(await server.end("SIGTERM")).toEqual({ code: 0, signal: null });
  expect(server.stderr()).toBe("");
});
