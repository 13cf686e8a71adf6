/**
 * What people, producers and misfortune do in a history: plain data, drawn from a seed, each with everything it needs. Taking some away
 * leaves the others what they were.
 */
import type { Intervention } from "../../src/store/store.ts";
import { CALM, type Faults } from "./faulty-store.ts";
import { LETTERS } from "./receiver.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface Sent {
  readonly n: number;
  readonly do: string;
  readonly keyed: boolean;
  /** The key is that of another one, which may be another tenant's or another topic's. */
  readonly keyOf?: number;
  readonly tenant: string | null;
  readonly orderingKey: string | null;
  readonly delayMs: number;
  readonly priority: number;
}

export type What =
  | { readonly kind: "send"; readonly slot: number; readonly how: How; readonly topic: string; readonly sent: readonly Sent[] }
  /** The same message once more, or another one under its key. */
  | { readonly kind: "again"; readonly slot: number; readonly n: number; readonly changed: boolean }
  | {
      readonly kind: "decide";
      readonly slot: number;
      readonly action: Intervention["action"];
      readonly at: number;
      readonly fence: Fence;
      /** Pressed twice. */
      readonly twice: boolean;
    }
  | { readonly kind: "pause"; readonly topic: string; readonly paused: boolean }
  | { readonly kind: "redefine"; readonly topic: string; readonly attemptsMax: number; readonly leaseMs: number }
  | { readonly kind: "kill" | "stop"; readonly slot: number; readonly downMs: number }
  | { readonly kind: "freeze" | "jump"; readonly slot: number; readonly ms: number }
  /** Killed or frozen at the worst moment: its next such call has happened, and it does not know yet. */
  | {
      readonly kind: "ambush";
      readonly slot: number;
      readonly verb: string;
      readonly how: "kill" | "freeze";
      readonly ms: number;
      /** The process that takes over from it does not hear that it did. */
      readonly unheard: boolean;
    }
  | { readonly kind: "faults"; readonly slot: number; readonly ms: number; readonly faults: Faults }
  | { readonly kind: "outage"; readonly topic: string; readonly ms: number }
  /** From here on everything is well but messages that are bad by themselves; at most one topic stays paused. */
  | { readonly kind: "calm"; readonly paused: string | null };

export type Action = { readonly afterMs: number } & What;
export type How = "one" | "many" | "text" | "deliver" | "store_first";
export const isDirect = (how: How): boolean => how === "deliver" || how === "store_first";
type Fence = "none" | "seen" | "stale";

/** Three work and send, the last one only sends. */
export const SLOTS = 4;
export const WORKERS = 3;
export const EVERYBODY = -1;

export const TOPICS = {
  plain: "sim/plain",
  keyed: "sim/keyed",
  strict: "sim/strict",
  limited: "sim/limited",
  holds: "sim/holds",
  handler: "code/handler",
} as const;

const TENANTS = [null, null, "t1", "t2"] as const;
const SCRIPT_MAX = 5;
export const CALM_MS = 60_000;
/** Enough for each worker to see twenty first failures, which is what a breaker may need where many failed before. */
const AWAY_SENT = 100;
/** Nobody is busy with the storm any more. */
const SETTLED_MS = 36_000;

/** What this history has at all: histories that have everything hide what only shows without some of it. */
interface Profile {
  readonly topics: readonly string[];
  readonly tenants: readonly (string | null)[];
  readonly badness: number;
  /** Some messages end the processes that attempt them. */
  readonly deadly: boolean;
  readonly weights: readonly (readonly [weight: number, make: (draw: Draw) => What | null])[];
  readonly stepMs: number;
}

export class Draw {
  readonly random: SeededRandom;
  readonly #profile: Profile;
  #sent = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed, "actions");
    this.#profile = profileOf(this.random);
  }

  /** The next thing that happens while nothing is well. */
  next(): Action {
    const { weights, stepMs } = this.#profile;
    const { random } = this;
    const afterMs = random.chance(0.4) ? 0 : Math.ceil(-Math.log(1 - random.next()) * stepMs);
    for (;;) {
      let left = random.next() * weights.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, make] of weights) {
        left -= weight;
        if (left >= 0) continue;
        const what = make(this);
        if (what) return { afterMs, ...what };
        break;
      }
    }
  }

  /** Everything gets well, poison comes first or not at all, and some traffic goes on. */
  *calm(): Generator<Action> {
    const { random } = this;
    yield { afterMs: 0, kind: "calm", paused: random.chance(0.2) ? this.topic() : null };
    if (random.chance(0.6)) {
      const topic = random.pick([TOPICS.plain, TOPICS.keyed, TOPICS.plain]);
      const tenant = random.pick([...TENANTS]);
      const sent = Array.from({ length: 60 }, () => ({ ...this.#ofMany(topic), do: "f", tenant, delayMs: 0 }));
      yield { afterMs: 1_000, kind: "send", slot: random.between(0, SLOTS - 1), how: "many", topic, sent };
    }
    let away = random.chance(0.4);
    for (let leftMs = CALM_MS; leftMs > 0; ) {
      const afterMs = random.between(20, 500);
      leftMs -= afterMs;
      if (away && leftMs < CALM_MS - SETTLED_MS) {
        away = false;
        yield* this.#away();
      }
      const topic = this.topic();
      const sent = [{ ...this.#one(topic), do: random.chance(0.1) ? "fo" : this.#well(topic) }];
      yield { afterMs, kind: "send", slot: random.between(0, SLOTS - 1), how: random.pick(["one", "text"]), topic, sent };
    }
  }

  /** A receiver goes away while everything else is well, and there is enough to do for everybody to notice. */
  *#away(): Generator<Action> {
    const topic = this.random.pick([TOPICS.plain, TOPICS.keyed, TOPICS.handler]);
    const sent = Array.from({ length: AWAY_SENT }, () => ({ ...this.#ofMany(topic), do: "o", orderingKey: null, delayMs: 0 }));
    yield { afterMs: 0, kind: "outage", topic, ms: 15_000 };
    yield { afterMs: 10, kind: "send", slot: this.slot(), how: "many", topic, sent };
  }

  topic(): string {
    return this.random.pick(this.#profile.topics);
  }

  slot(of = SLOTS): number {
    return this.random.between(0, of - 1);
  }

  /** Of what was sent lately. */
  known(): number | null {
    return this.#sent === 0 ? null : this.random.between(Math.max(1, this.#sent - 100), this.#sent);
  }

  send(how: How, count: number): What {
    const topic = this.topic();
    const sent = Array.from({ length: count }, () => this.#one(topic));
    // Under a key of its own: what waits below a store under the key of another one waits there for a person.
    const own = isDirect(how) ? sent.map(({ keyOf: _, ...rest }) => rest) : sent;
    return { kind: "send", slot: this.slot(), how, topic, sent: own };
  }

  #one(topic: string): Sent {
    const { random } = this;
    const ordered = topic === TOPICS.keyed || topic === TOPICS.strict;
    const other = random.chance(0.1) ? this.known() : null;
    return {
      n: ++this.#sent,
      do: this.#script(topic),
      keyed: random.chance(0.5),
      ...(other === null ? {} : { keyOf: other }),
      tenant: random.pick(this.#profile.tenants),
      orderingKey: ordered && random.chance(0.8) ? `o${random.between(1, 5)}` : null,
      delayMs: random.chance(0.15) ? random.between(1, 15_000) : 0,
      priority: random.chance(0.2) ? random.between(-2, 3) : 0,
    };
  }

  /** Under a key of its own: for one that has the key of another a store refuses all that came with it. */
  #ofMany(topic: string): Sent {
    const { keyOf: _, ...own } = this.#one(topic);
    return own;
  }

  #well(topic: string): string {
    const { random } = this;
    return random.pick(topic === TOPICS.handler && random.chance(0.2) ? LETTERS.long : LETTERS.wellDone);
  }

  #script(topic: string): string {
    const { random } = this;
    if (this.#profile.deadly && random.chance(0.015)) return random.pick(LETTERS.deadly);
    let script = "";
    while (script.length < SCRIPT_MAX && random.chance(this.#profile.badness)) script += random.pick(LETTERS.failing);
    if (random.chance(0.05)) return script + random.pick(LETTERS.ending);
    // Poison: whatever was last goes on for ever.
    if (script !== "" && random.chance(0.1)) return script;
    return script + this.#well(topic);
  }
}

function profileOf(random: SeededRandom): Profile {
  const has = (probability: number): boolean => random.chance(probability);
  const all = Object.values(TOPICS);
  const some = all.filter(() => has(0.5));
  const faults = has(0.8);
  const people = has(0.7);
  const weights: [number, (draw: Draw) => What | null][] = [
    [12, (draw) => draw.send("one", 1)],
    [3, (draw) => draw.send("text", draw.random.between(1, 4))],
    [4, (draw) => draw.send("many", draw.random.between(2, 25))],
    [has(0.6) ? 4 : 0, (draw) => draw.send(draw.random.pick(["deliver", "deliver", "store_first"]), 1)],
    [has(0.7) ? 4 : 0, again],
    [people ? 4 : 0, decide],
    [people ? 0.7 : 0, (draw) => ({ kind: "pause", topic: draw.topic(), paused: draw.random.chance(0.4) })],
    [people ? 0.3 : 0, redefine],
    [has(0.7) ? 1.2 : 0, (draw) => ({ kind: "kill", slot: draw.slot(), downMs: draw.random.between(10, 5_000) })],
    [has(0.5) ? 0.4 : 0, (draw) => ({ kind: "stop", slot: draw.slot(), downMs: draw.random.between(10, 2_000) })],
    [
      has(0.6) ? 1 : 0,
      (draw) => ({ kind: "freeze", slot: draw.slot(), ms: draw.random.pick([500, 2_500, 4_000, 6_000, 8_000, 30_000]) }),
    ],
    [has(0.7) ? 2 : 0, ambush],
    [has(0.5) ? 0.3 : 0, (draw) => ({ kind: "jump", slot: draw.slot(), ms: draw.random.between(-60_000, 60_000) })],
    [faults ? 2.5 : 0, faultsOf],
    [has(0.6) ? 0.4 : 0, (draw) => ({ kind: "outage", topic: draw.topic(), ms: draw.random.pick([2_000, 10_000, 40_000]) })],
  ];
  return {
    topics: some.length > 0 ? some : [TOPICS.plain],
    tenants: has(0.5) ? TENANTS : [null],
    badness: random.pick([0, 0.15, 0.15, 0.4]),
    deadly: has(0.3),
    weights,
    stepMs: random.pick([50, 300, 1_000]),
  };
}

function again(draw: Draw): What | null {
  const n = draw.known();
  return n === null ? null : { kind: "again", slot: draw.slot(), n, changed: draw.random.chance(0.3) };
}

function decide({ random }: Draw): What {
  const action = random.pick(["replay", "replay", "replay", "resolve", "discard", "cancel", "reschedule", "reschedule"] as const);
  const fence = random.pick(["none", "seen", "stale"] as const);
  const at = random.between(0, 1_000);
  return { kind: "decide", slot: random.between(0, SLOTS - 1), action, at, fence, twice: random.chance(0.2) };
}

function ambush(draw: Draw): What {
  const { random } = draw;
  const verb = random.pick(["claim", "claim", "claim", "settle", "reclaim", "enqueue"]);
  const how = random.pick(["kill", "freeze", "freeze"] as const);
  const ms = random.pick([1_000, 3_000, 5_000, 8_000]);
  return { kind: "ambush", slot: draw.slot(WORKERS), verb, how, ms, unheard: random.chance(0.4) };
}

function redefine(draw: Draw): What {
  const { random } = draw;
  return {
    kind: "redefine",
    topic: draw.topic(),
    attemptsMax: random.between(2, 6),
    leaseMs: random.pick([1_000, 2_000, 8_000]),
  };
}

/** Some things only go wrong when nothing else does. */
const AIMED = [["reclaim"], ["settle"], ["reclaim", "settle"], ["claim"], ["enqueue"], ["extend"], ["topics.list", "lanes"]];

function faultsOf(draw: Draw): What {
  const { random } = draw;
  // Taken over and nobody knows: the old holder comes back to a lease that is another's.
  if (random.chance(0.2))
    return { kind: "faults", slot: EVERYBODY, ms: 10_000, faults: { ...CALM, after: 1, verbs: ["reclaim"] } };
  // The store is away: what is to be kept has to be kept elsewhere.
  if (random.chance(0.1))
    return { kind: "faults", slot: EVERYBODY, ms: random.pick([5_000, 20_000]), faults: { ...CALM, before: 1 } };
  const bad = random.pick([0.05, 0.3, 1]);
  const faults: Faults = {
    before: random.chance(0.5) ? bad * 0.6 : 0,
    after: random.chance(0.6) ? bad * 0.4 : 0,
    stall: random.chance(0.4) ? bad * 0.3 : 0,
    deaf: random.pick([0, 0.3, 1]),
    leaders: random.chance(0.2),
    verbs: random.pick([null, null, ...AIMED]),
  };
  const slot = random.chance(0.4) ? EVERYBODY : draw.slot();
  return { kind: "faults", slot, ms: random.pick([300, 2_000, 10_000, 30_000]), faults };
}
