/**
 * The receivers: idempotent by key, and otherwise as bad as they come. What one does with a message stands in the message's own payload, a
 * letter for each call, so that a history can be made shorter without making it another one.
 */
import type { NewMessage } from "../../src/message/message.ts";
import { DELIVERED, DUPLICATE, type Outcome } from "../../src/message/outcome.ts";
import type { DeliverContext, Delivery, Sink } from "../../src/sink/sink.ts";
import { asks } from "./decision.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** What a payload says, beside bytes that only have to stay the same. */
export interface Script {
  /** The operation: one effect, whatever happens. */
  readonly n: number;
  /** One letter for each call, the last one for all that follow. */
  readonly do: string;
}

/** `o` takes it, `d` takes it and may say duplicate, `s` takes it slowly, and the rest fail in their own ways. */
export const LETTERS = {
  wellDone: ["o", "o", "o", "d", "s", "i"],
  failing: ["f", "F", "t", "h", "H", "x", "X", "a", "u", "e", "l"],
  ending: ["r", "R", "D"],
  /** Takes it, after longer than a lease: only where an attempt may take so long. */
  long: ["S"],
  /** Its process ends with it, each time. */
  deadly: ["K"],
} as const;

export interface Effect {
  readonly n: number;
  readonly key: string;
  readonly atMs: number;
}

export interface Expected {
  /** The message as it was given in, by its id; undefined: nobody gave such a one in. */
  find(id: string): Pick<NewMessage, "id" | "key" | "payload" | "topic" | "tenantId"> | undefined;
  /** An attempt begins: whether it may is checked there. Returns how it ends. */
  begins(process: SimProcess, delivery: Delivery): () => void;
  /** The process ends here and now. */
  kills(process: SimProcess): void;
}

export class Receivers {
  /** By topic, tenant and key: the first one counts, as with any receiver that honours keys. */
  readonly effects = new Map<string, Effect>();
  /** Operation → keys under which it took effect. */
  readonly keysOf = new Map<number, Set<string>>();
  readonly #world: World;
  readonly #expected: Expected;
  readonly #calls = new Map<number, number>();
  readonly #outages = new Map<string, Outage>();
  /** Topic → tenant → when a call for it last went wrong. */
  readonly #failures = new Map<string, Map<string | null, number>>();
  #healed = false;
  calls = 0;

  constructor(world: World, expected: Expected) {
    this.#world = world;
    this.#expected = expected;
  }

  /** Whether the next call with this message would go well. */
  wouldTake(payload: string): boolean {
    const script = JSON.parse(payload) as Script;
    return isWell(this.#letter(script, this.#calls.get(script.n) ?? 0));
  }

  took(topic: string, tenantId: string | null, key: string): boolean {
    return this.effects.has(effectName(topic, tenantId, key));
  }

  outage(topic: string, ms: number): void {
    const { nowMs } = this.#world;
    this.#outages.set(topic, { sinceMs: nowMs, untilMs: nowMs + ms, calls: 0 });
  }

  isAway(topic: string): boolean {
    return this.#world.nowMs < this.backMs(topic);
  }

  /** When the last outage of the topic's receiver ended, or will. */
  backMs(topic: string): number {
    return this.#outages.get(topic)?.untilMs ?? 0;
  }

  /** Everybody is well from now on, but for messages that are bad by themselves. */
  heal(): void {
    this.#outages.clear();
    this.#healed = true;
  }

  sinkOf(process: SimProcess): Sink {
    return { kind: "function", deliver: (delivery, context) => this.#deliver(process, delivery, context) };
  }

  /** Also for handlers, which get the same delivery. */
  handle(process: SimProcess, delivery: Delivery, context: DeliverContext): Outcome | Promise<Outcome> {
    return this.#deliver(process, delivery, context);
  }

  #deliver(process: SimProcess, delivery: Delivery, context: DeliverContext): Outcome | Promise<Outcome> {
    this.calls++;
    this.#check(delivery);
    const script = JSON.parse(delivery.payload) as Script;
    const call = this.#calls.get(script.n) ?? 0;
    const away = this.isAway(delivery.topic);
    if (!away) this.#calls.set(script.n, call + 1);
    const letter = away ? "c" : this.#letter(script, call);
    if (!isWell(letter)) this.#failed(delivery);
    this.#world.note(`${process.name} calls ${delivery.topic} n${script.n} #${delivery.attempt} ${letter}`);
    const effect = (): void => this.#take(script.n, delivery);
    const ended = this.#expected.begins(process, delivery);
    if (away) this.#missed(delivery.topic);
    return over(ended, () => this.#answer(letter, process, delivery, context, effect));
  }

  #failed({ topic, tenantId }: Delivery): void {
    const tenants = this.#failures.get(topic) ?? new Map();
    this.#failures.set(topic, tenants.set(tenantId, this.#world.nowMs));
  }

  /** Whose messages failed lately in this topic, as far back as anybody remembers. */
  failing(topic: string): (string | null)[] {
    const sinceMs = this.#world.nowMs - REMEMBERED_MS;
    return [...(this.#failures.get(topic) ?? [])].flatMap(([tenantId, atMs]) => (atMs >= sinceMs ? [tenantId] : []));
  }

  /** A call that found nobody: outages are not met by trying. */
  #missed(topic: string): void {
    const outage = this.#outages.get(topic) as Outage;
    if (!this.#healed) return;
    outage.calls++;
    const forMs = this.#world.nowMs - outage.sinceMs;
    if (outage.calls > NOTICED + (forMs * PROBES_PER_SECOND) / 1_000)
      this.#world.violated("I6", `${topic} was called ${outage.calls} times in ${forMs} ms although nobody answers there`);
  }

  #letter({ do: letters }: Script, call: number): string {
    const letter = letters[Math.min(call, letters.length - 1)] as string;
    // What a process lacks is not the message's: once all is well nobody lacks anything, and nobody dies of anything.
    return (letter === "u" || letter === "D" || letter === "K") && this.#healed ? "o" : letter;
  }

  #answer(
    letter: string,
    process: SimProcess,
    { idempotencyKey: key, topic, tenantId }: Delivery,
    context: DeliverContext,
    effect: () => void,
  ): Outcome | Promise<Outcome> {
    const { net } = process;
    const known = this.effects.has(effectName(topic, tenantId, key));
    const after = (ms: number, outcome: Outcome): Promise<Outcome> =>
      new Promise((resolve) => process.later(ms, () => resolve(outcome)));
    const never = (): Promise<Outcome> => new Promise(() => {});
    const cut = (): Promise<Outcome> =>
      new Promise((resolve) => {
        context.onAbort?.(() => resolve({ kind: "unknown", code: "timeout", error: "no answer" }));
      });
    const ms = net.between(1, 30);
    switch (letter) {
      case "i":
        effect();
        return DELIVERED;
      case "o":
        this.#world.after(Math.floor(ms / 2), effect);
        return after(ms, DELIVERED);
      case "d":
        this.#world.after(Math.floor(ms / 2), effect);
        return after(ms, known ? DUPLICATE : DELIVERED);
      case "s":
        this.#world.after(1_000, effect);
        return after(1_000 + ms, DELIVERED);
      case "S":
        this.#world.after(3_000, effect);
        return after(3_000 + ms, DELIVERED);
      case "f":
        return after(ms, FAILED);
      case "F":
        effect();
        return after(ms, FAILED);
      case "t":
        effect();
        return cut();
      case "h":
        return cut();
      case "H":
        // The effect comes when everybody has given up on it.
        this.#world.after(4_000, effect);
        return never();
      case "x":
        throw new Error("simulated: the sink throws");
      case "X":
        effect();
        return after(ms, DELIVERED).then(() => Promise.reject(new Error("simulated: the sink fails after its effect")));
      case "a":
        return after(ms, { ...FAILED, code: "http_429", error: asks(500 * ms), retryAfterMs: 500 * ms });
      case "e":
        return after(ms, { ...FAILED, error: LONG_ERROR });
      case "l":
        // Of a handler anything is an answer.
        return after(ms, topic.startsWith("code/") ? FAILED : ({ kind: "done" } as unknown as Outcome));
      case "K":
        this.#expected.kills(process);
        return never();
      case "D":
        return after(ms, { kind: "disable", code: "http_410", error: "simulated: it wants nothing more" });
      case "u":
        return after(ms, { kind: "unserved", code: "no_port", error: "simulated: this process has no port left" });
      case "c":
        return after(1, { kind: "retry", code: "connection_failed", error: "simulated: nobody listens" });
      case "R":
        effect();
        return after(ms, REJECTED);
      default:
        return after(ms, REJECTED);
    }
  }

  #check({ id, idempotencyKey, payload, topic }: Delivery): void {
    const given = this.#expected.find(id);
    if (!given) {
      this.#world.violated("I2", `${id} reached its receiver and nobody gave it in`);
      return;
    }
    if (idempotencyKey !== (given.key ?? given.id))
      this.#world.violated("I7", `${id} reached its receiver as ${idempotencyKey}, not as ${given.key ?? given.id}`);
    if (payload !== given.payload || topic !== given.topic)
      this.#world.violated("I8", `${id} reached its receiver with other bytes than were accepted`);
  }

  #take(n: number, { topic, tenantId, idempotencyKey: key }: Delivery): void {
    const name = effectName(topic, tenantId, key);
    if (this.effects.has(name)) return;
    this.effects.set(name, { n, key, atMs: this.#world.nowMs });
    const keys = this.keysOf.get(n) ?? new Set();
    this.keysOf.set(n, keys.add(name));
    if (keys.size > 1) this.#world.violated("one effect", `operation ${n} took effect under ${[...keys].join(" and ")}`);
  }
}

const WELL: ReadonlySet<string> = new Set([...LETTERS.wellDone, ...LETTERS.long]);
const isWell = (letter: string): boolean => WELL.has(letter);

/** Longer than a breaker counts with a failure, clocks that run wrong included. */
const REMEMBERED_MS = 90_000;

interface Outage {
  readonly sinceMs: number;
  readonly untilMs: number;
  calls: number;
}

/** Once it is noticed that a receiver is away one of them tries, once a second. */
const PROBES_PER_SECOND = 1.1;
/**
 * Until then: where many failed before, each of three workers may need twenty first failures of its own, and has eight under way: 84 in all; and
 * a few more for each attempt that began before the outage and ends well in it. Second tries, which are no evidence (docs/decisions/0007), are
 * few: a process that has not heard yet makes them for a second. In 82 outages of 242 histories it was 48 at most.
 */
const NOTICED = 180;

/** Runs it and says when it is over, whether or not it needs a promise. */
function over(ended: () => void, run: () => Outcome | Promise<Outcome>): Outcome | Promise<Outcome> {
  let answer: Outcome | Promise<Outcome>;
  try {
    answer = run();
  } catch (error) {
    ended();
    throw error;
  }
  if (answer instanceof Promise) answer.then(ended, ended);
  else ended();
  return answer;
}

export const effectName = (topic: string, tenantId: string | null, key: string): string => JSON.stringify([topic, tenantId, key]);

const FAILED = { kind: "retry", code: "http_500", error: "simulated: it failed" } as const;
/** More than any store has to take, and with what PostgreSQL cannot. */
const LONG_ERROR = `simulated: \0${"é\u0007".repeat(3_000)}`;
const REJECTED = { kind: "reject", code: "http_422", error: "simulated: it will never fit" } as const;
