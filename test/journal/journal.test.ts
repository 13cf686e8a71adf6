/**
 * The journal on real files: what was kept comes back byte for byte, damage is found and named, and two users of one directory
 * never lose an entry to each other.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createJournal } from "../../src/store/journal/journal.ts";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { HEADER_BYTES, readSegment } from "../../src/store/journal/record.ts";
import { startableDist } from "../support/build.ts";
import { entry, freshDirectory, idsOf, openJournal } from "./support.ts";

const KILLED = new URL("./killed-child.mjs", import.meta.url).pathname;

const segmentsOf = async (directory: string): Promise<string[]> =>
  (await readdir(directory)).filter((name) => name.endsWith(".journal")).map((name) => join(directory, name));

describe("what is kept", () => {
  it("comes back whole, in order, after a close and a new open", async () => {
    const directory = await freshDirectory();
    const payload = '{"big": 12345678901234567890, "dup":1,"dup":2, "text":"\\u0000 \u2028 é 😀"}';
    const first = entry({
      payload,
      key: "k",
      tenantId: "t",
      priority: 7,
      delayMs: 60_000,
      directTry: { code: "http_500", error: "x" },
    });
    const second = entry({ directTry: { code: "http_422", error: "no", rejected: true } });
    const one = await openJournal(directory);
    expect(await one.journal.append(first)).toEqual({ kind: "kept" });
    expect(await one.journal.append(second)).toEqual({ kind: "kept" });
    await one.journal.close();
    const two = await openJournal(directory);
    expect(await two.journal.waiting(10)).toEqual([first, second]);
    expect(two.journal.stats()).toMatchObject({ waiting: 2, quarantined: 0, oldestAtMs: first.atMs });
    await two.journal.close();
  });

  it("callers at the same time share one fsync and are all kept", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const entries = Array.from({ length: 500 }, () => entry());
    const results = await Promise.all(entries.map((one) => journal.append(one)));
    expect(results.every(({ kind }) => kind === "kept")).toBe(true);
    await journal.close();
    expect((await readJournal({ directory })).entries.map(({ id }) => id)).toEqual(idsOf(entries));
  });

  it("leaves only when a store has it, and its file with the last entry", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const [a, b, c] = [entry(), entry(), entry()];
    for (const one of [a, b, c]) await journal.append(one);
    await journal.done([a.message.id, c.message.id]);
    await journal.close();
    const again = await openJournal(directory);
    expect(idsOf(await again.journal.waiting(10))).toEqual([b.message.id]);
    await again.journal.done([b.message.id]);
    expect((await readJournal({ directory })).entries).toEqual([]);
    await again.journal.close();
    expect(await readdir(directory)).toEqual([]);
  });

  it("a quarantined entry stays, with its reason, and is offered no more", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const one = entry();
    await journal.append(one);
    await journal.quarantine(one.message.id, "its key has another payload");
    await journal.close();
    const again = await openJournal(directory);
    expect(await again.journal.waiting(10)).toEqual([]);
    expect(again.journal.stats()).toMatchObject({ waiting: 0, quarantined: 1 });
    await again.journal.close();
    const [listed] = (await readJournal({ directory })).entries;
    expect(listed).toMatchObject({ state: "quarantined", reason: "its key has another payload", entry: one });
  });

  it("I10: it is bounded: what would pass bytesMax is refused as a value", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory, { bytesMax: 8_192 });
    const results = [];
    for (let n = 0; n < 12; n++) results.push(await journal.append(entry({ payload: JSON.stringify("x".repeat(1_000)) })));
    expect(results.filter(({ kind }) => kind === "kept").length).toBeGreaterThan(3);
    expect(results.at(-1)).toMatchObject({ kind: "refused", code: "journal_full" });
    await journal.close();
  });

  it("a seal key keeps payloads unreadable in the files, and a wrong one is told", async () => {
    const directory = await freshDirectory();
    const sealed = await openJournal(directory, { sealKey: "a key of sixteen or more" });
    const one = entry({ payload: '{"card":"4111-secret"}' });
    await sealed.journal.append(one);
    await sealed.journal.close();
    const bytes = await readFile((await segmentsOf(directory))[0] as string);
    expect(bytes.includes("4111-secret")).toBe(false);
    expect((await readJournal({ directory, sealKey: "a key of sixteen or more" })).entries[0]?.entry).toEqual(one);
    expect((await readJournal({ directory })).entries[0]).toMatchObject({ state: "unreadable" });
    expect((await readJournal({ directory, sealKey: "another key of sixteen" })).entries[0]?.reason).toContain("sealed with key");
  });

  it("files and directory are for their owner only", async () => {
    const directory = join(await freshDirectory(), "journal");
    const { journal } = await openJournal(directory);
    await journal.append(entry());
    const [segment = ""] = await segmentsOf(directory);
    expect([(await stat(directory)).mode & 0o777, (await stat(segment)).mode & 0o777]).toEqual([0o700, 0o600]);
    await journal.close();
  });
});

describe("damage", () => {
  async function threeEntries() {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const entries = [entry(), entry(), entry()];
    for (const one of entries) await journal.append(one);
    await journal.close();
    const [segment = ""] = await segmentsOf(directory);
    return { directory, segment, entries, bytes: await readFile(segment) };
  }

  it("a torn tail of any length is cut and reported; what was kept before it is there", async () => {
    const { directory, segment, entries, bytes } = await threeEntries();
    const { records } = readSegment(bytes);
    const last = records[2]?.offset as number;
    for (const length of [last + 1, last + 20, last + 21, bytes.length - 1]) {
      await writeFile(segment, bytes.subarray(0, length));
      expect(readSegment(await readFile(segment))).toMatchObject({ end: last, damage: [{ kind: "torn_tail", offset: last }] });
    }
    const { journal, notes } = await openJournal(directory);
    expect(idsOf(await journal.waiting(10))).toEqual(idsOf(entries.slice(0, 2)));
    expect(notes).toContainEqual(expect.objectContaining({ what: "torn_tail", offset: last }));
    await journal.append(entry());
    expect(journal.stats().waiting).toBe(3);
    await journal.close();
    expect((await readJournal({ directory })).damage).toEqual([]);
  });

  it("a corrupt record in the middle is skipped and named with its offset, whichever byte it is", async () => {
    const { segment, entries, bytes } = await threeEntries();
    const { records } = readSegment(bytes);
    const [, middle, after] = records;
    for (let at = middle?.offset as number; at < (after?.offset as number); at++) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 0x41, at);
      const read = readSegment(damaged);
      expect(read.records.map(({ offset }) => offset)).toEqual([records[0]?.offset, after?.offset]);
      expect(read.damage).toEqual([{ kind: "corrupt_record", offset: middle?.offset, bytes: middle?.bytes }]);
    }
    expect(entries).toHaveLength(3);
    await writeFile(segment, bytes);
  });

  it("a file with a record that cannot be read stays when all its other entries have left, and is named at every start", async () => {
    const { directory, segment, bytes } = await threeEntries();
    const { offset = 0, bytes: length = 0 } = readSegment(bytes).records[1] ?? {};
    bytes.writeUInt8(bytes.readUInt8(offset + 30) ^ 0x41, offset + 30);
    await writeFile(segment, bytes);
    const damaged = bytes.subarray(offset, offset + length);
    const found = { what: "corrupt_record", offset, bytes: length };
    for (const waiting of [2, 0]) {
      const { journal, notes } = await openJournal(directory);
      expect(notes).toContainEqual(expect.objectContaining(found));
      expect(journal.stats().waiting).toBe(waiting);
      await journal.done(idsOf(await journal.waiting(10)));
      await journal.close();
      const [kept = ""] = await segmentsOf(directory);
      expect((await readFile(kept)).subarray(offset, offset + length).equals(damaged)).toBe(true);
    }
    expect(await readJournal({ directory })).toMatchObject({ entries: [], damage: [{ kind: "corrupt_record", offset }] });
  });

  it("half of the header is enough; without both nothing is guessed and the file stays", async () => {
    const { directory, segment, bytes } = await threeEntries();
    const half = Buffer.from(bytes);
    half.fill(0, 0, HEADER_BYTES / 2);
    expect(readSegment(half).records).toHaveLength(3);
    half.fill(0, 0, HEADER_BYTES);
    await writeFile(segment, half);
    const { journal, notes } = await openJournal(directory);
    expect(notes).toContainEqual(expect.objectContaining({ what: "torn_tail", offset: 0 }));
    await journal.close();
    const [kept = ""] = await segmentsOf(directory);
    expect((await readFile(kept)).equals(half)).toBe(true);
  });

  it("a payload that imitates a record is not taken for one when its own record is damaged", async () => {
    const { bytes } = await threeEntries();
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const imitation = bytes.subarray(readSegment(bytes).records[0]?.offset).toString("latin1");
    await journal.append(entry({ payload: JSON.stringify(imitation) }));
    await journal.close();
    const [segment = ""] = await segmentsOf(directory);
    const damaged = await readFile(segment);
    damaged.writeUInt8(damaged.readUInt8(HEADER_BYTES + 9) ^ 1, HEADER_BYTES + 9);
    expect(readSegment(damaged).records).toEqual([]);
  });

  it("rubbish after the end is a torn tail, not an error", async () => {
    const { directory, segment } = await threeEntries();
    await appendFile(segment, Buffer.alloc(5_000, 0xc7));
    const { journal } = await openJournal(directory);
    expect(journal.stats().waiting).toBe(3);
    await journal.close();
  });
});

describe("two on one directory", () => {
  it("each writes files of its own; neither touches the other's while it lives", async () => {
    const directory = await freshDirectory();
    const [one, two] = [await openJournal(directory), await openJournal(directory)];
    await Promise.all(Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? one : two).journal.append(entry())));
    expect(await one.journal.takeOver()).toBe(0);
    expect([one.journal.stats().waiting, two.journal.stats().waiting]).toEqual([25, 25]);
    await one.journal.close();
    expect(await two.journal.takeOver()).toBe(25);
    expect(two.journal.stats().waiting).toBe(50);
    await two.journal.close();
  });

  it("several at once take over what one left behind: each entry comes to exactly one", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory, { bytesMax: 65_536 });
    for (let n = 0; n < 60; n++) await journal.append(entry({ payload: JSON.stringify("x".repeat(500)) }));
    await journal.close();
    const heirs = await Promise.all(Array.from({ length: 4 }, () => openJournal(directory)));
    const counts = heirs.map((heir) => heir.journal.stats().waiting);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(60);
    for (const heir of heirs) await heir.journal.close();
  });

  it("a live owner whose file was taken over notices and writes the entry again: nothing is lost", async () => {
    const directory = await freshDirectory();
    const stalled = await openJournal(directory);
    const [before, after] = [entry(), entry()];
    await stalled.journal.append(before);
    const [segment = ""] = await segmentsOf(directory);
    expect(await segmentsOf(directory)).toHaveLength(1);
    // What a take-over does first, while the owner is stalled.
    await rename(segment, segment.replace(/[^/]+$/, "1-000000000000-000001.journal"));
    expect(await stalled.journal.append(after)).toEqual({ kind: "kept" });
    expect(stalled.notes).toContainEqual(expect.objectContaining({ what: "lost_segment" }));
    const found = (await readJournal({ directory })).entries.map(({ id }) => id);
    expect(new Set(found)).toEqual(new Set([before.message.id, after.message.id]));
    await stalled.journal.close();
    const heir = await openJournal(directory);
    expect(new Set(idsOf(await heir.journal.waiting(10)))).toEqual(new Set([before.message.id, after.message.id]));
    await heir.journal.close();
  });

  it("a live owner whose file was taken over writes no quarantine over what its heir wrote", async () => {
    const directory = await freshDirectory();
    const stalled = await openJournal(directory);
    const [one, other] = [entry(), entry()];
    for (const each of [one, other]) await stalled.journal.append(each);
    // To its heir it looks gone.
    await rm(join(directory, (await readdir(directory)).find((name) => name.endsWith(".owner")) as string));
    const heir = await openJournal(directory);
    await heir.journal.done([one.message.id]);
    await stalled.journal.quarantine(other.message.id, "it contradicts what is stored");
    expect(stalled.notes).toContainEqual(expect.objectContaining({ what: "lost_segment" }));
    expect((await readJournal({ directory })).entries).toMatchObject([{ id: other.message.id, state: "waiting" }]);
    await stalled.journal.close();
    await heir.journal.close();
  });

  it.skipIf(process.platform !== "linux")(
    "what a killed process left is taken over at the next open, not after a while",
    async () => {
      const directory = await freshDirectory();
      const kept = [entry(), entry()];
      const options = JSON.stringify({ dist: await startableDist(), directory, entries: kept });
      const child = spawn(process.execPath, [KILLED, options], { stdio: ["ignore", "pipe", "inherit"] });
      await once(child.stdout, "data");
      const alive = await openJournal(directory);
      expect(alive.journal.stats().waiting).toBe(0);
      await alive.journal.close();
      child.kill("SIGKILL");
      await once(child, "exit");
      const { journal } = await openJournal(directory);
      expect(idsOf(await journal.waiting(10))).toEqual(idsOf(kept));
      await journal.close();
    },
  );

  it("after close it refuses, as a value", async () => {
    const journal = createJournal({ directory: await freshDirectory() });
    await journal.open();
    await journal.close();
    expect(await journal.append(entry())).toMatchObject({ kind: "refused", code: "journal_failed" });
  });
});

describe("attempts from below", () => {
  const failed = { outcome: "retry", code: "http_503", error: "busy", ms: 12 } as const;

  it("are written beside the entry and come back with it, also after a takeover", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const [one, other] = [entry({ delayMs: 50 }), entry()];
    for (const each of [one, other]) await journal.append(each);
    const { id } = one.message;
    expect(await journal.begin(id, 1)).toEqual(one);
    await journal.ended(id, { failed, delayMs: 7_000, dead: false });
    expect(await journal.begin(id, 2)).toEqual(one);
    const endedMs = Date.now();
    await journal.ended(id, { failed: null, delayMs: 8_000, dead: false });
    expect(await journal.begin(id, 2)).toEqual(one);
    await journal.ended(id, null);
    const tried = { failed: [failed], delayMs: 8_000, dead: false };
    await journal.close();
    const again = await openJournal(directory);
    expect((await again.journal.waiting(10)).map((each) => each.tried ?? null)).toMatchObject([tried, null]);
    const [first] = again.journal.list();
    expect(first?.tried?.atMs).toBeGreaterThan(endedMs - 1_000);
    await again.journal.close();
  });

  it("stay with the entry when the same message comes again; another payload under its id is a conflict", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const one = entry();
    const { id } = one.message;
    await journal.append(one);
    await journal.begin(id, 1);
    await journal.ended(id, { failed, delayMs: 7_000, dead: true });
    const other = entry({ id, payload: '"another"' });
    expect(await Promise.all([journal.append(one), journal.append(other)])).toEqual([{ kind: "kept" }, { kind: "conflict" }]);
    const [twin, twin2] = [entry({ payload: "1" }), entry({ payload: "2" })];
    const together = [twin, { ...twin2, message: { ...twin2.message, id: twin.message.id } }, twin];
    const kinds = (await Promise.all(together.map((each) => journal.append(each)))).map(({ kind }) => kind);
    expect(kinds).toEqual(["kept", "conflict", "kept"]);
    await journal.close();
    const again = await openJournal(directory);
    expect(await again.journal.read([id, twin.message.id])).toMatchObject([
      { message: { payload: one.message.payload }, tried: { failed: [failed], dead: true } },
      { message: { payload: "1" } },
    ]);
    await again.journal.close();
  });

  it("I6: one that ended with its process counts as lost", async () => {
    const directory = await freshDirectory();
    const { journal } = await openJournal(directory);
    const one = entry({ delayMs: 50 });
    await journal.append(one);
    await journal.begin(one.message.id, 1);
    await journal.close();
    const again = await openJournal(directory);
    const [left] = await again.journal.waiting(1);
    expect(left?.tried).toMatchObject({ failed: [{ outcome: "lost", code: "process_lost" }], dead: false });
    await again.journal.close();
  });

  it("a segment that another process has taken over is left alone: neither attempted nor marked nor emptied", async () => {
    const directory = await freshDirectory();
    const stalled = await openJournal(directory);
    const one = entry();
    await stalled.journal.append(one);
    const [segment = ""] = await segmentsOf(directory);
    await rename(segment, segment.replace(/[^/]+$/, "1-000000000000-000001.journal"));
    const heir = await openJournal(directory);
    expect(idsOf(await heir.journal.waiting(10))).toEqual([one.message.id]);
    expect(await stalled.journal.begin(one.message.id, 1)).toBeNull();
    expect(stalled.notes).toMatchObject([{ what: "lost_segment" }]);
    await stalled.journal.done([one.message.id]);
    expect(await heir.journal.waiting(10)).toEqual([one]);
    await heir.journal.close();
    await stalled.journal.close();
  });
});
