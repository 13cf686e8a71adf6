/**
 * Fault 9 with whole processes: the version before serves and delivers under load while three migrators of this one bring the schema up, one
 * of them killed on its way; then both serve, then the old ones go, one by SIGTERM and one by SIGKILL. Nothing is lost or changed, and
 * conservation never calls it broken.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { KERNEL_SET } from "../../src/store/postgres/migrate.ts";
import { builtBefore } from "../support/built-before.ts";
import { databaseUrl, dropSchema, freshSchema, withClient } from "../support/postgres.ts";
import { startCli, until } from "../support/processes.ts";
import { startReceiver } from "../support/receiver.ts";
import { Accepted, type Served, serve, topicAt } from "./served.ts";

/** How long each of the phases is under load; FAULT_PHASE_MS makes it another time. */
const PHASE_MS = Number(process.env.FAULT_PHASE_MS ?? 20_000);
const NEWER = "src/store/postgres/migrations/0025-operations.ts";

it("fault 9: the version before delivers beside this one over three migrations: nothing lost, no false alarm", async () => {
  const before = await builtBefore(NEWER);
  const schema = freshSchema();
  const env = { DATABASE_URL: databaseUrl(), MAKEGOOD_SCHEMA: schema };
  let n = 0;
  await using receiver = await startReceiver();
  receiver.default(({ attempt }) => (attempt === 1 && ++n % 10 === 0 ? { status: 503 } : { status: 200, afterMs: n % 20 }));
  const applied = () =>
    withClient(async (client) => (await client.query(`select name from "${schema}".migration order by version`)).rows.length);

  const old = [await serve(env, undefined, before), await serve(env, undefined, before)];
  const [first, second] = old as [Served, Served];
  await topicAt(first, "two/versions", receiver, { ordering: "key" });
  const had = await applied();
  expect(had).toBe(KERNEL_SET.migrations.length - 3);

  const accepted = new Accepted();
  const servers = new Set<Served>(old);
  const enough = new AbortController();
  const client = async (name: number): Promise<void> => {
    for (let i = 0; !enough.signal.aborted; i++) {
      const more = i % 3 === 0 ? { ordering_key: `k${i % 7}` } : {};
      const key = `c${name}-${i}`;
      // The same request, of whichever server is there, until one of them has accepted it.
      while (!(await accepted.send([...servers][i % servers.size] as Served, "two/versions", key, { name, i }, more)))
        await sleep(50);
    }
  };
  const clients = [0, 1, 2].map(client);
  await sleep(PHASE_MS / 4);

  // Three at once, and one of them ends on its way.
  const migrators = await Promise.all([1, 2, 3].map(() => startCli(["migrate", "up"], env)));
  await until("one of them is at it", async () => (await applied()) > had || migrators.some(({ over }) => over));
  migrators[0]?.signal("SIGKILL");
  const ends = await Promise.all(migrators.slice(1).map(({ ended }) => ended));
  expect(ends).toMatchObject([{ code: 0 }, { code: 0 }]);
  expect(await applied()).toBe(KERNEL_SET.migrations.length);
  const deliveredBefore = receiver.effects.size;
  await sleep(PHASE_MS);
  // On the newer schema, and no process of this version serves yet.
  expect(receiver.effects.size).toBeGreaterThan(deliveredBefore);
  expect(old.map(({ process }) => process.over)).toEqual([false, false]);

  const now = await serve(env);
  servers.add(now);
  const states = new Set<unknown>();
  const verify = async (): Promise<Record<string, unknown>> => {
    const { body } = await now.call("POST", "/verify", {});
    states.add(body.state);
    expect(body.divergences, JSON.stringify(body)).toEqual([]);
    return body;
  };
  const endMs = performance.now() + PHASE_MS;
  while (performance.now() < endMs) {
    await verify();
    await sleep(500);
  }
  servers.delete(first);
  expect(await first.process.end("SIGTERM")).toMatchObject({ code: 0 });
  await verify();
  servers.delete(second);
  await second.process.end("SIGKILL");
  await verify();
  await sleep(PHASE_MS / 4);
  enough.abort();
  await Promise.all(clients);

  await accepted.delivered(now, receiver, 180_000);
  const last = await verify();
  expect({ state: last.state, states: [...states].filter((state) => state !== "whole" && state !== "unknown") }).toEqual({
    state: "whole",
    states: [],
  });
  const invalid = `select count(*)::int as n from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace s on s.oid = c.relnamespace
    where s.nspname = $1 and not i.indisvalid`;
  // The index of days that were there before it is whole after the next upkeep.
  await now.call("POST", "/jobs/prune-settled/run", {});
  expect(await withClient(async (client) => (await client.query(invalid, [schema])).rows)).toEqual([{ n: 0 }]);
  expect(await now.process.end("SIGTERM")).toMatchObject({ code: 0 });
  await dropSchema(schema);
}, 900_000);
