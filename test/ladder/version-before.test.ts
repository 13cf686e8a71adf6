/**
 * A journal that the version before wrote and was killed with: every kind of entry and mark of it moves up as what it was.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { freshDirectory } from "../journal/support.ts";
import { startReceiver } from "../support/receiver.ts";
import { fragile, ladderScene } from "./support.ts";

const WRITTEN = new URL("../support/version-before/journal.base64", import.meta.url);

it("moves up with its attempts, in order, once per key; what was in quarantine stays there", async () => {
  await using receiver = await startReceiver();
  const directory = await freshDirectory();
  const bytes = Buffer.from(await readFile(WRITTEN, "utf8"), "base64");
  await writeFile(join(directory, "4711-0123456789ab-000001.journal"), bytes);
  const primary = fragile();
  const { mg } = await ladderScene({ url: receiver.url, store: primary.store, journal: { directory } });
  await mg.ladder.drain();
  const { data } = await primary.store.list({ limit: 100 });
  const rows = data.map(({ key, payload, status, attempts, lastCode }) => [key, payload, status, attempts, lastCode].join(" "));
  expect(rows.reverse()).toEqual([
    'plain {"n":1} pending 0 ',
    'tried {"n":2} pending 1 http_503',
    'lost {"n":3} pending 1 process_lost',
    'rejected {"n":4} dead 0 http_422',
    'o1 "a" pending 0 ',
    'o2 "b" pending 0 ',
    'dead {"n":6} dead 1 http_422',
  ]);
  const tried = data.find(({ key }) => key === "tried");
  expect((await primary.store.history(tried?.id ?? "")).attempts).toMatchObject([
    { attempt: 0, counted: false, code: "http_500" },
    { attempt: 1, counted: true, code: "http_503", durationMs: 12 },
  ]);
  expect(mg.ladder.status()).toMatchObject({ waiting: { journal: 0 }, quarantined: 1 });
  mg.work();
  await expect.poll(() => receiver.effects.has("o2"), { timeout: 10_000 }).toBe(true);
  expect(receiver.arrivals.map(({ key }) => key).filter((key) => key.startsWith("o"))).toEqual(["o1", "o2"]);
  await mg.close();
  expect((await readJournal({ directory })).entries).toMatchObject([
    { state: "quarantined", entry: { message: { key: "odd" } } },
  ]);
});
