/** A journal that takes nothing more is no safety below the primary store, and readiness does not say that it is. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { createHealth } from "../../src/server/health.ts";
import type { Kernel } from "../../src/server/kernel.ts";
import { createJournal } from "../../src/store/journal/journal.ts";
import type { Journal } from "../../src/store/journal.ts";
import { freshDirectory } from "../journal/support.ts";
import { startReceiver } from "../support/receiver.ts";
import { fragile, ladderScene, TOPIC } from "./support.ts";

const quiet = { retry: { attemptsMax: 5, baseMs: 3_600_000, maxMs: 3_600_000 } };
const FULL = "below it memory only: the journal is full or cannot be written";

describe("a journal that is full", () => {
  it("what is taken survives nothing, and the deliver line of /readyz says memory only until there is room again", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const journal = { directory: await freshDirectory(), bytesMax: 8_192 };
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, journal });
    const kernel = { mg, clock: systemClock, draining: () => false } as unknown as Kernel;
    const health = createHealth(kernel);
    const said = async (): Promise<string | null | undefined> =>
      (await health.ready()).find(({ name }) => name === "deliver")?.detail;
    const becomes = (text: string) => expect.poll(said, { timeout: 10_000 }).toBe(text);
    await becomes("into the primary store");
    primary.mode = "refuses";
    // Nothing was handed down yet: what the primary would have survived does not count.
    await becomes("only below the primary store; what is taken now survives power-loss");
    const stored = async () => (await mg.deliver(TOPIC, "x".repeat(3_000))).stored;
    expect([await stored(), await stored()]).toEqual(["journal", "journal"]);
    expect(mg.ladder.status()).toMatchObject({ survives: "power-loss", survivesBelow: "power-loss", journalRefuses: false });
    expect(await stored()).toBe("memory");
    expect(mg.ladder.status()).toMatchObject({ survives: "nothing", survivesBelow: "nothing", journalRefuses: true });
    await becomes(`only below the primary store; what is taken now survives nothing; ${FULL}`);
    primary.mode = "up";
    const moved = { survivesBelow: "power-loss", journalRefuses: false, waiting: { journal: 0, memory: 0 } };
    await expect.poll(() => mg.ladder.status(), { timeout: 10_000 }).toMatchObject(moved);
    await becomes("into the primary store");
    await mg.close();
  });
});

describe("a journal whose directory is gone", () => {
  it("keeps nothing that only memory has from going up when the store is back", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const journal = { directory: join(await freshDirectory(), "journal") };
    const { mg, of } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, journal });
    // What the journal is still making at its start may come between.
    await rm(journal.directory, { recursive: true, maxRetries: 10, retryDelay: 20 });
    primary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 1, { key: "k" })).toMatchObject({ stored: "memory", survives: "nothing" });
    primary.mode = "up";
    await expect.poll(() => mg.ladder.status().waiting.memory, { timeout: 15_000 }).toBe(0);
    expect((await mg.store.list({ limit: 10 })).data).toMatchObject([{ key: "k" }]);
    expect(of("rung_failed").some(({ rung, error }) => rung === "journal" && error.includes("ENOENT"))).toBe(true);
    await mg.close();
  });
});

describe("a disk that has room again", () => {
  it("what only memory had goes into the journal while the store is away, and the status says so", async () => {
    await using receiver = await startReceiver({ status: 503 });
    const primary = fragile();
    const real = createJournal({ directory: await freshDirectory() });
    let full: boolean = true;
    const append: Journal["append"] = (entry) =>
      full ? Promise.resolve({ kind: "refused", code: "journal_full", error: "no space left" }) : real.append(entry);
    const journal = new Proxy(real, {
      get(of, name) {
        const member: unknown = Reflect.get(of, name);
        return name === "append" ? append : typeof member === "function" ? member.bind(of) : member;
      },
    });
    const { mg } = await ladderScene({ url: receiver.url, topic: quiet, store: primary.store, journal });
    primary.mode = "refuses";
    expect(await mg.deliver(TOPIC, 1)).toMatchObject({ stored: "memory" });
    expect(mg.ladder.status()).toMatchObject({ durable: "nothing", journalRefuses: true });
    full = false;
    await expect.poll(() => mg.ladder.status().waiting, { timeout: 15_000 }).toEqual({ journal: 1, memory: 0 });
    expect(mg.ladder.status()).toMatchObject({ durable: "power-loss", journalRefuses: false });
    await mg.close();
    await real.close();
  });
});
