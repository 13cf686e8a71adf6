/**
 * What lies below the primary store in some histories: a secondary store that all share and that is away at times, and a journal in each
 * place. Both outlive processes: what they took has to be delivered, or go up, in the end.
 */
import type { TopicDefinition } from "../../src/message/topic.ts";
import type { RungName } from "../../src/store/fallback.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import type { StatusCount, Store } from "../../src/store/store.ts";
import { CALM, faultyStore } from "./faulty-store.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Disk, simJournal } from "./sim-journal.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** What deliver() kept below the primary store. */
export interface KeptBelow {
  readonly process: SimProcess;
  readonly rung: RungName;
  readonly id: string;
  readonly topic: string;
  readonly tenantId: string | null;
  readonly key: string;
}

/** So often, and for so long, nobody reaches the secondary store. */
const AWAY_EVERY_MS = 45_000;
const AWAY_MS = 12_000;

export class Rungs {
  readonly kept: KeptBelow[] = [];
  readonly #world: World;
  readonly #second: Store | null;
  readonly #hasJournal: boolean;
  readonly #disks = new Map<number, Disk>();
  #calm = false;
  /** As it was last seen. */
  #waiting = 0;

  constructor(world: World, seed: number) {
    const random = new SeededRandom(seed, "rungs");
    const clock = { wallMs: () => world.nowMs, monotonicMs: () => world.nowMs, after: world.after.bind(world) };
    this.#world = world;
    this.#second = random.chance(0.4) ? createMemoryStore({ clock, random: new SeededRandom(seed, "second") }) : null;
    this.#hasJournal = random.chance(0.4);
  }

  async open(definitions: Iterable<TopicDefinition>): Promise<void> {
    for (const definition of definitions) await this.#second?.topics.put(definition, "code");
  }

  /** The rungs of a process in this place. */
  of(process: SimProcess, place: number) {
    const disk = this.#disks.get(place) ?? new Disk();
    this.#disks.set(place, disk);
    const isAway = (): boolean => !this.#calm && this.#world.elapsedMs % AWAY_EVERY_MS < AWAY_MS;
    const secondary =
      this.#second && faultyStore(this.#world, process, this.#second, () => (isAway() ? { ...CALM, before: 1 } : CALM));
    return { secondary: secondary ?? undefined, journal: this.#hasJournal ? simJournal(disk, process) : undefined };
  }

  calm(): void {
    this.#calm = true;
  }

  /** Nothing waits here, as far as was seen. */
  get isEmpty(): boolean {
    return this.#waiting === 0 && [...this.#disks.values()].every(({ waiting }) => waiting.length === 0);
  }

  async look(): Promise<void> {
    if (!this.#second) return;
    const counts = await this.#second.counts();
    // A dead letter that went up stays there as resolved, as what was delivered does: neither waits for anything.
    const isOver = ({ status, resolution }: StatusCount): boolean =>
      status === "delivered" || (status === "dead" && resolution !== "open");
    this.#waiting = counts.reduce((sum, one) => sum + (isOver(one) ? 0 : one.count), 0);
  }
}
