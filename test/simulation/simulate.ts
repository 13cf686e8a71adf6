/**
 * Plays histories. One is a fresh store with a few processes on it: for a while everything goes wrong, then everything is well but for bad
 * messages, then nothing new comes until all is quiet. What must hold is checked after each step; a seed is as many histories as its
 * steps allow, each with a seed of its own.
 */
import { createHash } from "node:crypto";
import { type Action, Draw } from "./actions.ts";
import { checkAll, checkEnd, checkTouched, checkWaiting, isOver, isQuiet } from "./checks.ts";
import type { Call } from "./observed-store.ts";
import { seedOf } from "./seeded-random.ts";
import { Stage } from "./stage.ts";
import { type Failure, World } from "./world.ts";

export interface HistoryOptions {
  readonly seed: number;
  /** Steps while everything goes wrong; absent with `actions`. */
  readonly stormSteps?: number;
  /** Before all that the seed draws. */
  readonly first?: readonly Action[];
  /** These instead of what the seed draws. */
  readonly actions?: readonly Action[];
  readonly keptMs?: number;
  /** It ends after so many, as if nothing were wrong. */
  readonly stepsMax?: number;
  readonly record?: (call: Call) => void;
}

export interface History {
  readonly seed: number;
  readonly steps: number;
  readonly virtualMs: number;
  readonly digest: string;
  readonly failure: Failure | null;
  /** What was done until the end, or until it failed. */
  readonly actions: readonly Action[];
  readonly tail: readonly string[];
  readonly counts: Counts;
}

export interface Counts {
  readonly accepted: number;
  readonly pruned: number;
  readonly calls: number;
  /** The longest that something due waited while everything was well. */
  readonly freshMs: number;
  readonly failedMs: number;
}

const TOO_LONG = "too long";
const CHECK_ALL_STEPS = 1_000;
const WAITING_MS = 1_000;
/** The end comes: retries are few and short, and leases end. */
const QUIET_WITHIN_MS = 1_800_000;
const ARRIVES_MS = 1_000;
const SILENCE_MS = 8_000;
/** A breaker that sees its receiver live has closed by then. */
const KNOCKED_MS = 5_000;
const HEARTBEAT_MS = 1_000;
const CLOSED_WITHIN_MS = 60_000;
const KEPT_MS = 90_000;

class Player {
  readonly world = new World();
  readonly done: Action[] = [];
  readonly stage: Stage;
  readonly longest = { freshMs: 0, failedMs: 0 };
  readonly #options: HistoryOptions;
  #waitingMs = 0;

  constructor(options: HistoryOptions) {
    const { seed, keptMs = KEPT_MS, record } = options;
    this.#options = options;
    this.stage = new Stage({ world: this.world, seed, keptMs, record });
  }

  async play(): Promise<void> {
    const { world, stage } = this;
    await stage.open();
    await new Promise(setImmediate);
    const { actions, first = [], stormSteps = 0, seed } = this.#options;
    await this.#perform(first.values());
    if (actions) await this.#perform(actions.values());
    else {
      const draw = new Draw(seed);
      const storm = function* () {
        while (world.steps < stormSteps) yield draw.next();
        yield* draw.calm();
      };
      await this.#perform(storm());
    }
    // What was sent last is still on its way.
    await this.#pass(ARRIVES_MS);
    await this.#drain();
    // After a silence nobody is busy any more, and one message has to be noticed all the same.
    await this.#pass(SILENCE_MS);
    world.after(0, () => void stage.knock());
    await this.#pass(KNOCKED_MS);
    await this.#until(() => isQuiet(stage), QUIET_WITHIN_MS, "I6", "it does not get quiet again");
    if (world.failure) return;
    await checkEnd(world, stage);
    let closed = (): boolean => false;
    world.after(0, () => {
      closed = stage.close();
    });
    await this.#until(() => closed(), CLOSED_WITHIN_MS, "I10", "a process does not stop");
    await checkEnd(world, stage);
  }

  /** Until what was accepted before is over, and nothing goes on any more. */
  async #drain(): Promise<void> {
    const { world, stage } = this;
    const { accepted } = stage.ledger;
    let over = false;
    const beat = (): void => {
      if (over) return;
      stage.heartbeat();
      world.after(HEARTBEAT_MS, beat);
    };
    world.after(0, beat);
    await this.#step();
    await this.#until(() => isOver(stage, accepted), QUIET_WITHIN_MS, "I6", "something is neither settled nor dead nor held");
    over = true;
    await this.#until(() => isQuiet(stage), QUIET_WITHIN_MS, "I6", "it does not get quiet");
  }

  async #pass(ms: number): Promise<void> {
    const fromMs = this.world.nowMs;
    await this.#until(() => this.world.nowMs > fromMs + ms, QUIET_WITHIN_MS, "I6", "time stands still");
  }

  /** One action after the other, each at its time, with everything else that happens until then. */
  async #perform(actions: Iterator<Action>): Promise<void> {
    const { world, stage } = this;
    for (let next = actions.next(); !next.done; next = actions.next()) {
      const action = next.value;
      let due = false;
      world.after(action.afterMs, () => {
        due = true;
        this.done.push(action);
        world.note(`action ${JSON.stringify(action)}`);
        stage.perform(action);
      });
      while (!due) {
        await this.#step();
        if (world.failure) return;
      }
    }
  }

  async #until(over: () => boolean, withinMs: number, invariant: string, text: string): Promise<void> {
    const { world } = this;
    const untilMs = world.nowMs + withinMs;
    while (!world.failure && !over()) {
      if (world.nowMs > untilMs) world.violated(invariant, `${text} after ${withinMs} ms`);
      if (!(await this.#step())) return;
    }
  }

  async #step(): Promise<boolean> {
    const { world, stage } = this;
    if (world.steps >= (this.#options.stepsMax ?? Number.POSITIVE_INFINITY)) world.violated(TOO_LONG, "it was given up");
    const more = await world.step();
    if (stage.gone.length > 0 || world.steps % CHECK_ALL_STEPS === 0) await checkAll(world, stage);
    if (stage.ledger.touched.size > 0 || stage.gone.length > 0) await checkTouched(world, stage);
    if (world.nowMs - this.#waitingMs >= WAITING_MS) {
      this.#waitingMs = world.nowMs;
      await stage.rungs.look();
      const { freshMs, failedMs } = checkWaiting(world, stage);
      this.longest.freshMs = Math.max(this.longest.freshMs, freshMs);
      this.longest.failedMs = Math.max(this.longest.failedMs, failedMs);
    }
    return more;
  }
}

export async function playHistory(options: HistoryOptions): Promise<History> {
  const player = new Player(options);
  const { world, stage, done } = player;
  await player.play();
  const { accepted, pruned } = stage.ledger;
  return {
    seed: options.seed,
    steps: world.steps,
    virtualMs: world.elapsedMs,
    digest: world.digest(),
    failure: world.failure?.invariant === TOO_LONG ? null : world.failure,
    actions: done,
    tail: world.tail(60),
    counts: { accepted, pruned, calls: stage.receivers.calls, ...player.longest },
  };
}

export interface Run {
  readonly seed: number;
  readonly steps: number;
  readonly histories: number;
  readonly virtualMs: number;
  readonly digest: string;
  readonly failed: History | null;
  readonly counts: Counts;
}

/** Most histories are short, some are long. */
const STORM_STEPS = [1_500, 3_000, 3_000, 6_000, 20_000];

/** As many histories as it takes to make so many steps. */
export async function simulate(seed: number, steps: number): Promise<Run> {
  const hash = createHash("sha256");
  const counts = { accepted: 0, pruned: 0, calls: 0, freshMs: 0, failedMs: 0 };
  const sum = { steps: 0, histories: 0, virtualMs: 0 };
  let failed: History | null = null;
  while (sum.steps < steps && !failed) {
    const of = seedOf(seed, sum.histories);
    const most = Math.max(200, Math.floor((steps - sum.steps) / 2));
    const history = await playHistory({ seed: of, stormSteps: Math.min(most, STORM_STEPS[of % STORM_STEPS.length] as number) });
    sum.histories++;
    sum.steps += history.steps;
    sum.virtualMs += history.virtualMs;
    hash.update(history.digest);
    for (const name of ["accepted", "pruned", "calls"] as const) counts[name] += history.counts[name];
    for (const name of ["freshMs", "failedMs"] as const) counts[name] = Math.max(counts[name], history.counts[name]);
    if (history.failure) failed = history;
  }
  return { seed, ...sum, digest: hash.digest("hex"), failed, counts };
}
