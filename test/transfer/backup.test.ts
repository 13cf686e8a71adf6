/**
 * `makegood backup` and `makegood restore` on real embedded servers: a copy under load holds all that was accepted before it began, a killed one leaves
 * nothing under its name, and a copy with a damaged file is refused before anything is restored.
 */
import { appendFile, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { createPostgresStore, startEmbedded } from "../../src/store/postgres/index.ts";
import { definition, newMessage, PLAIN } from "../../src/testing/store-conformance/fixtures.ts";
import { verbs } from "../../src/testing/store-conformance/scene.ts";
import { makegood, removeWorkspaces, running, workspace } from "../cli/support.ts";
import { startableDist } from "../support/build.ts";
import { startShell } from "../support/processes.ts";

afterAll(removeWorkspaces);

it("a backup under load holds all that was accepted before it began", { timeout: 120_000 }, async () => {
  const cwd = await workspace({ prepared: true });
  const server = await startEmbedded({ dataDir: join(cwd, ".makegood") });
  const store = createPostgresStore({ url: server.url });
  await store.open();
  await store.topics.put(definition(PLAIN), "api");
  const { id } = verbs(store);
  const accepted: string[] = [];
  const accept = async (count: number) => {
    const messages = Array.from({ length: count }, () => newMessage(id(), { payload: `"${"x".repeat(500)}"` }));
    await store.enqueue(messages);
    accepted.push(...messages.map((one) => one.id));
  };
  await accept(300);
  let loading = true;
  const load = (async () => {
    while (loading) {
      await accept(accepted.length < 3_000 ? 20 : 1);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();

  const killed = await running(cwd, ["backup", "killed"]);
  const begun = async () => (await readdir(cwd)).some((name) => name.startsWith("killed.part-"));
  while (!(await begun()) && killed.child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 5));
  await killed.stop("SIGKILL");
  expect((await readdir(cwd)).includes("killed")).toBe(false);
  // Neither under its name nor under that of its unfinished part.
  const left = (await readdir(cwd)).filter((name) => name.startsWith("killed.part-"));
  expect(left).toHaveLength(1);
  for (const name of ["killed", ...left])
    expect((await makegood(cwd, ["restore", name, "--dry-run"])).stderr).toMatch(
      /is not a whole backup: it has no manifest\.json/,
    );

  // A file system of 2 MiB in a namespace of its own: less than a data directory has.
  const small = `mkdir -p full && mount -t tmpfs -o size=2m none full && ("$0" "$1" backup full/copy || true) && ls -A full`;
  const stage = `exec unshare --mount --propagation private ${process.geteuid?.() === 0 ? "" : "--user --map-root-user"} sh -c '${small}' "$@"`;
  const shell = await startShell(`cd "$0" && ${stage}`, [cwd, process.execPath, join(await startableDist(), "cli/main.js")]);
  await shell.ended;
  expect([shell.stderr(), shell.facts]).toEqual([expect.stringMatching(/full\/copy: the disk is full.*Nothing is left/), []]);

  const before = [...accepted];
  const made = await makegood(cwd, ["backup", "copy", "--json"]);
  expect([made.code, made.stderr]).toEqual([0, ""]);
  loading = false;
  await load;
  expect((await makegood(cwd, ["backup", "copy"])).stderr).toContain("is not empty");
  const settled = await store.counts();
  await store.close();
  await server.close();

  const env = { MAKEGOOD_DATA_DIR: join(cwd, "restored") };
  const victim = join(cwd, "copy", "pgdata", "PG_VERSION");
  const bytes = await readFile(victim);
  await appendFile(victim, "x");
  const refused = await makegood(cwd, ["restore", "copy"], env);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/PG_VERSION was changed.*Nothing was restored/)]);
  await rm(victim);
  expect((await makegood(cwd, ["restore", "copy"], env)).stderr).toContain("PG_VERSION is missing");
  expect(await readdir(cwd)).not.toContain("restored");
  await writeFile(victim, bytes);

  expect((await makegood(cwd, ["restore", "copy"])).stderr).toContain("is not empty");
  const restored = await makegood(cwd, ["restore", "copy", "--json"], env);
  expect([restored.code, JSON.parse(restored.stdout)]).toMatchObject([0, { proven: true, state: "whole", divergences: 0 }]);
  const again = await startEmbedded({ dataDir: env.MAKEGOOD_DATA_DIR });
  const there = createPostgresStore({ url: again.url });
  try {
    await there.open();
    const found = new Set<string>();
    for (let from = 0; from < before.length; from += 200) {
      for (const one of await there.movable.find(before.slice(from, from + 200))) found.add(one.id);
    }
    expect(before.filter((one) => !found.has(one))).toEqual([]);
    expect(before.length).toBeGreaterThanOrEqual(300);
    const [count, whole] = [await there.counts(), settled].map((rows) => rows.reduce((sum, { count: more }) => sum + more, 0));
    expect(count).toBeLessThanOrEqual(whole as number);
    await there.enqueue([newMessage(id())]);
  } finally {
    await there.close();
    await again.close();
  }
});
