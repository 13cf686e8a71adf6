/**
 * Fault 24: the disk under PostgreSQL is full, then there is room again (a tmpfs of 130 MB). An enqueue is refused by its name, deliver() goes down the
 * ladder, nothing that was acknowledged is lost, and everything goes on by itself without a restart.
 */
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { ownPostgres } from "../support/own-postgres.ts";
import { until, workspace } from "../support/processes.ts";
import { fill, smallDisk } from "../support/small-disk.ts";
import { codeOf } from "./redis-scene.ts";
import { scene } from "./scene.ts";

vi.setConfig({ testTimeout: 120_000 });

it("fault 24: PostgreSQL's disk is full: refused by its name, kept by the ladder, and all goes on when there is room", async () => {
  const disk = await smallDisk(130);
  const settings = { max_wal_size: "32MB", min_wal_size: "32MB", shared_buffers: "16MB" };
  const server = await ownPostgres({ folder: disk, settings });
  const done: string[] = [];
  let broken = false;
  const sink = (_: unknown, { key }: { readonly key: string | null }) => {
    if (broken) throw new Error("not now");
    done.push(key ?? "");
  };
  const retry = { attemptsMax: 50, baseMs: 100, maxMs: 500 };
  await using fault = await scene({
    url: server.url,
    topics: [topic("full/disk", { sink, leaseMs: 3_000, retry })],
    journal: { directory: join(await workspace(), "journal") },
  });
  const big = (key: string) => ({ key, filler: "x".repeat(6_000) });
  const enqueue = async (key: string): Promise<string> => {
    const code = await codeOf(fault.mg.enqueue("full/disk", big(key), { key }));
    if (code === "accepted") fault.history.ok(key, JSON.stringify(big(key)));
    else fault.history.unknown(key, JSON.stringify(big(key)));
    return code;
  };
  for (let n = 0; n < 100; n++) expect(await enqueue(`before-${n}`)).toBe("accepted");

  const free = await fill(disk);
  const codes = new Map<string, number>();
  for (let n = 0; n < 3_000 && (codes.get("store_full") ?? 0) < 20; n++) {
    const code = await enqueue(`full-${n}`);
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  // The log needs room as well: where that runs out first, the server ends, and what was under way is unknown.
  expect([...codes.keys()].filter((code) => code !== "accepted")).toEqual(["store_full"]);
  const { error } = await fault.mg.watch.fresh(0, 5_000);
  expect(error).toMatch(/disk space/);
  broken = true;
  const handed = await fault.mg.deliver("full/disk", big("handed"), { key: "handed" });
  expect(handed).toMatchObject({ kind: "queued", stored: "journal", survives: "power-loss" });
  fault.history.ok("handed", JSON.stringify(big("handed")));
  const before = server.pid;

  await free();
  await until("it takes messages again", async () => (await enqueue(`after-${performance.now()}`)) === "accepted");
  await until("the watch says so", async () => (await fault.mg.watch.fresh(0, 5_000)).error === null);
  // Tried until then it is not delivered from the journal, which would leave no row up here.
  await fault.mg.ladder.drain();
  broken = false;
  fault.mg.work();
  await fault.settled();
  expect(fault.mg.ladder.status().waiting).toMatchObject({ journal: 0, memory: 0 });
  expect(done).toContain("handed");
  expect([server.running, server.pid]).toEqual([true, before]);
  expect(await fault.check({ attemptsMax: 50 })).toEqual([]);
});
