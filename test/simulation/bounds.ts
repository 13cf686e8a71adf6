/**
 * What may be seen where an attempt begins: that its worker has a live claim on it (I3), and the limits of its process and of its topic (I10),
 * how many run at once and how many begin. Only attempts of workers count: deliver() may have to go by its own clock.
 */
import type { Delivery } from "../../src/sink/sink.ts";
import type { Ledger } from "./ledger.ts";
import type { Said } from "./said.ts";
import type { World } from "./world.ts";

/** Of each worker. */
export const CONCURRENCY = 8;

/** Less than any attempt may take, so that the place of each that counts is still its own, whichever process froze or died meanwhile. */
const RUNS_MS = 1_400;
/** Begun later than allotted: by claims under way, by what was asked for ahead, by probes that are owed. */
const LATE_STARTS = 20;

interface Bucket {
  level: number;
  atMs: number;
}

export class Bounds {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #said: Said;
  /** Name of a limit → when each that runs began. */
  readonly #running = new Map<string, Set<{ readonly atMs: number }>>();
  readonly #buckets = new Map<string, Bucket>();

  constructor(world: World, ledger: Ledger, said: Said) {
    this.#world = world;
    this.#ledger = ledger;
    this.#said = said;
  }

  /** An attempt of this process begins. Returns how it ends. */
  begins(process: string, { id, topic, tenantId, attempt }: Delivery): () => void {
    if (this.#said.isDirect(id)) return () => {};
    const entry = this.#ledger.entries.get(id);
    const lease = this.#ledger.leases.get(entry?.lease ?? "");
    const live = entry?.attempts === attempt && lease?.by === process && lease.untilMs >= this.#world.nowMs;
    if (!live) this.#world.violated("I3", `${process} attempts ${topic} ${id} #${attempt} and has no claim on it`);
    const { concurrencyTotal, ratePerSecond, tenantRatePerSecond } = this.#ledger.topics.get(topic)?.definition ?? {};
    const ends = [this.#runs(process, CONCURRENCY)];
    if (concurrencyTotal !== undefined) ends.push(this.#runs(topic, concurrencyTotal));
    if (ratePerSecond !== undefined) this.#starts(topic, ratePerSecond);
    if (tenantRatePerSecond !== undefined) this.#starts(`${topic} ${tenantId}`, tenantRatePerSecond);
    return () => {
      for (const end of ends) end();
    };
  }

  /** One more runs under this name, of so many that may. Returns how it ends. */
  #runs(name: string, most: number): () => void {
    const running = this.#running.get(name) ?? new Set();
    this.#running.set(name, running);
    const { nowMs } = this.#world;
    for (const one of running) {
      if (nowMs - one.atMs <= RUNS_MS) break;
      running.delete(one);
    }
    const mine = { atMs: nowMs };
    running.add(mine);
    if (running.size > most)
      this.#world.violated("I10", `${running.size} attempts run at once of ${name}, which may have ${most}`);
    return () => running.delete(mine);
  }

  /** One more begins, of so many a second. */
  #starts(name: string, perSecond: number): void {
    const { nowMs } = this.#world;
    const most = Math.max(1, perSecond) + LATE_STARTS;
    const bucket = this.#buckets.get(name) ?? { level: most, atMs: nowMs };
    this.#buckets.set(name, bucket);
    bucket.level = Math.min(most, bucket.level + ((nowMs - bucket.atMs) * perSecond) / 1_000) - 1;
    bucket.atMs = nowMs;
    if (bucket.level < 0) this.#world.violated("I10", `more than ${perSecond} attempts a second begin of ${name}`);
  }
}
