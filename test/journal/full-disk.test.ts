/**
 * Fault 41, the journal's disk is full: a file-size limit of the operating system (the same short write and refusal as a full disk), in a
 * process of its own. What was kept is whole, what could not be kept is in memory and in the ERROR log, nothing throws.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { readJournal } from "../../src/store/journal/read-journal.ts";
import { readLine } from "../../src/store/ladder/format/error-line.ts";
import { startableDist } from "../support/build.ts";
import { startReceiver } from "../support/receiver.ts";
import { entry, freshDirectory, openJournal } from "./support.ts";

const CHILD = new URL("./full-disk-child.mjs", import.meta.url).pathname;

it("fault 41: a full disk is a refusal that falls to memory and the ERROR log; after the outage all of it moves up", async () => {
  await using receiver = await startReceiver({ status: 503 });
  const directory = await freshDirectory();
  const options = JSON.stringify({ dist: await startableDist(), directory, url: receiver.url });
  // In units of 1,024 bytes; exec, so that the signal reaches the process itself.
  const child = spawn("bash", ["-c", 'ulimit -f 48; exec "$0" "$@"', process.execPath, CHILD, options], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += String(text);
  });
  const facts: Record<string, unknown>[] = [];
  const of = (type: string) => facts.filter((fact) => fact.type === type);
  for await (const line of createInterface({ input: child.stdout })) {
    facts.push(JSON.parse(line));
    if (facts.at(-1)?.type === "full") {
      // Looked at while the process lives: what it was told is kept is there, whole.
      const { entries, damage } = await readJournal({ directory });
      const kept = of("result").filter(({ stored }) => stored === "journal");
      expect(kept.length).toBeGreaterThan(5);
      // A new file begins below the limit again, so what was only in memory may have gone up into the journal since.
      const found = new Set(entries.map(({ entry: one }) => one?.message.key));
      expect(kept.filter(({ key }) => !found.has(String(key)))).toEqual([]);
      expect(damage).toEqual([]);
      child.kill("SIGUSR2");
    }
  }
  const [code] = child.exitCode === null ? await once(child, "close") : [child.exitCode];
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const results = of("result");
  expect(results.filter(({ stored }) => stored === "memory")).toHaveLength(10);
  expect(results.every(({ kind }) => kind === "queued")).toBe(true);
  const logged = of("error").map(({ line }) => readLine(String(line), null));
  expect(logged.map((read) => read?.ok && read.entry.message.key)).toEqual(
    results.filter(({ stored }) => stored === "memory").map(({ key }) => key),
  );
  const [drained] = of("drained");
  expect(drained).toMatchObject({ waiting: { journal: 0, memory: 0 } });
  expect(new Set(drained?.stored as string[])).toEqual(new Set(results.map(({ key }) => key)));
  expect(of("again")).toMatchObject([{ kind: "queued", stored: "journal" }]);
});

it.runIf(canMount())(
  "a file system that is full refuses, keeps what it had, and takes entries again when there is room",
  async () => {
    const mount = mkdtempSync(join(tmpdir(), "makegood-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=128k", "tmpfs", mount]);
    try {
      const { journal } = await openJournal(join(mount, "journal"));
      const kept: string[] = [];
      for (;;) {
        const one = entry({ payload: JSON.stringify("x".repeat(4_000)) });
        const appended = await journal.append(one);
        if (appended.kind === "refused") {
          expect(appended.code).toBe("journal_full");
          break;
        }
        kept.push(one.message.id);
      }
      expect(kept.length).toBeGreaterThan(10);
      expect((await journal.waiting(1_000)).map(({ message }) => message.id)).toEqual(kept);
      await journal.done(kept);
      expect(await journal.append(entry())).toEqual({ kind: "kept" });
      await journal.close();
    } finally {
      execFileSync("umount", [mount]);
      rmSync(mount, { recursive: true, force: true });
    }
  },
);

/** Only where this user may mount; the limit above runs everywhere. */
function canMount(): boolean {
  const path = mkdtempSync(join(tmpdir(), "makegood-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", path], { stdio: "ignore" });
    execFileSync("umount", [path], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}
