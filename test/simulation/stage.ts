/**
 * The stage of one history: the shared store, the processes on it with the real code inside, and the receivers. It does what an action
 * says and nothing else.
 */
import { createMakegood, type Makegood } from "../../src/create.ts";
import { errorText, isMakegoodError } from "../../src/message/errors.ts";
import type { TopicDefinition, TopicName } from "../../src/message/topic.ts";
import type { MessageFields } from "../../src/message/validate.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createMemoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { type Action, EVERYBODY, type How, isDirect, type Sent, SLOTS, TOPICS, WORKERS } from "./actions.ts";
import { Bounds, CONCURRENCY } from "./bounds.ts";
import { CALM, type Faults, faultyStore } from "./faulty-store.ts";
import { Judge } from "./judge.ts";
import { type Entry, Ledger } from "./ledger.ts";
import { type Call, observe } from "./observed-store.ts";
import { Receivers } from "./receiver.ts";
import { Rungs } from "./rungs.ts";
import { reasonFor, Said } from "./said.ts";
import { definitions, fieldsOf, handlerTopic, oddly, SETTLING_MS } from "./scene.ts";
import { SeededRandom } from "./seeded-random.ts";
import { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

export interface StageOptions {
  readonly world: World;
  readonly seed: number;
  /** How long settled messages are kept. */
  readonly keptMs: number;
  readonly record?: ((call: Call) => void) | undefined;
}

interface Slot {
  process: SimProcess | null;
  makegood: Makegood | null;
  worker: ReturnType<Makegood["work"]> | null;
  started: number;
  faults: Faults;
  faultsUntilMs: number;
  ids: () => string;
}

export class Stage {
  readonly ledger = new Ledger();
  readonly said = new Said();
  readonly receivers: Receivers;
  readonly inner: Store;
  /** What retention deleted since the last look. */
  readonly gone: Entry[] = [];
  readonly slots: Slot[] = [];
  readonly rungs: Rungs;
  /** Since when nothing but bad messages is bad; null: not yet. */
  calmSinceMs: number | null = null;
  readonly #options: StageOptions;
  readonly #world: World;
  readonly #observed: (caller: string) => Store;
  readonly #sent = new Map<number, { readonly topic: string; readonly sent: Sent; readonly direct: boolean }>();
  readonly #definitions = new Map<string, TopicDefinition>();
  readonly #skew: SeededRandom;
  /** Hints may be lost on the best of days. */
  readonly #usual: Faults;
  #beats = 1_000_000;
  /** Those that are there to be in the way. */
  #flood = 0;

  constructor(options: StageOptions) {
    const { world, seed, record } = options;
    this.#options = options;
    this.#world = world;
    this.rungs = new Rungs(world, seed);
    this.#skew = new SeededRandom(seed, "skew");
    this.#usual = { ...CALM, deaf: this.#skew.pick([0, 0.2, 1]) };
    const bounds = new Bounds(world, this.ledger, this.said);
    const find = (id: string) => this.ledger.given.get(id);
    this.receivers = new Receivers(world, {
      find,
      begins: ({ name }, delivery) => bounds.begins(name, delivery),
      kills: (process) =>
        this.#kill(
          this.slots.findIndex((slot) => slot.process === process),
          RESTARTED_MS,
        ),
    });
    // Its clock is the authority: nobody else's counts.
    const clock = { wallMs: () => world.nowMs, monotonicMs: () => world.nowMs, after: world.after.bind(world) };
    this.inner = createMemoryStore({ clock, random: new SeededRandom(seed, "store") });
    const judge = new Judge(world, this.ledger, {
      sent: (message) => this.said.wrong(message),
      direct: (id) => this.said.isDirect(id),
      took: ({ id, topic, tenantId, key }) => this.receivers.took(topic, tenantId, key ?? id),
      failing: (topic) => this.receivers.failing(topic),
      calm: () => this.settledSinceMs !== null,
      keptMs: options.keptMs,
    });
    this.#observed = observe({ world, judge, inner: this.inner, gone: this.gone, record });
    for (const definition of definitions()) this.#definitions.set(definition.name, definition);
  }

  /** Since when nobody is busy any more with what went wrong; null: one of them may be. */
  get settledSinceMs(): number | null {
    const sinceMs = (this.calmSinceMs ?? Number.POSITIVE_INFINITY) + SETTLING_MS;
    return this.#world.nowMs > sinceMs ? sinceMs : null;
  }

  get keptMs(): number {
    return this.#options.keptMs;
  }

  async open(): Promise<void> {
    const people = this.#observed("people");
    for (const [name, definition] of this.#definitions) if (name !== TOPICS.handler) await people.topics.put(definition, "api");
    await this.rungs.open(this.#definitions.values());
    for (let slot = 0; slot < SLOTS; slot++) {
      this.slots.push({ ...NOTHING, ids: createIds() });
      this.#start(slot);
    }
  }

  perform(action: Action): void {
    switch (action.kind) {
      case "send":
        if (this.ledger.pending.size > BACKLOG_MAX + this.#flood) return;
        if (action.sent.length > BACKLOG_MAX) this.#flood += action.sent.length;
        return void this.#give(action);
      case "again": {
        const known = this.#sent.get(action.n);
        // Without a key it would be another operation.
        if (!known?.sent.keyed || (action.changed && known.direct)) return;
        const [payload, fields] = fieldsOf(known.sent);
        const changed = action.changed ? { n: -action.n, do: known.sent.do } : payload;
        this.#send(action.slot, "one", known.topic, [[changed, fields]]);
        return;
      }
      case "decide":
        this.#decide(action);
        return;
      case "pause":
        return void this.#observed("people").topics.pause(action.topic, action.paused);
      case "redefine": {
        const before = this.#definitions.get(action.topic) as TopicDefinition;
        const { attemptsMax, leaseMs } = action;
        if (action.topic === TOPICS.handler) return;
        return void this.#observed("people").topics.put({ ...before, leaseMs, retry: { ...before.retry, attemptsMax } }, "api");
      }
      default:
        this.#strike(action);
        return;
    }
  }

  /** Misfortune, and its end. */
  #strike(action: Exclude<Action, { kind: "send" | "again" | "decide" | "pause" | "redefine" }>): void {
    switch (action.kind) {
      case "kill":
        this.#kill(action.slot, action.downMs);
        return;
      case "stop":
        this.#stop(action.slot, action.downMs);
        return;
      case "freeze":
        this.slots[action.slot]?.process?.freeze(action.ms);
        return;
      case "jump":
        this.slots[action.slot]?.process?.jump(action.ms);
        return;
      case "ambush": {
        const { process } = this.slots[action.slot] as Slot;
        const { slot, verb, how, ms, unheard } = action;
        const run = (): void => {
          if (how === "kill") this.#kill(slot, ms);
          else process?.freeze(ms);
          const faults = { ...CALM, after: 1, verbs: ["reclaim"] };
          if (unheard) this.#strike({ kind: "faults", afterMs: 0, slot: EVERYBODY, ms: ms + 3_000, faults });
        };
        if (process) process.ambush = { verb, run };
        return;
      }
      case "faults": {
        const struck = action.slot === EVERYBODY ? this.slots : [this.slots[action.slot] as Slot];
        for (const slot of struck) Object.assign(slot, { faults: action.faults, faultsUntilMs: this.#world.nowMs + action.ms });
        return;
      }
      case "outage":
        this.receivers.outage(action.topic, action.ms);
        return;
      case "calm":
        this.#calm(action.paused);
        return;
    }
  }

  #calm(paused: string | null): void {
    this.calmSinceMs = this.#world.nowMs;
    this.receivers.heal();
    this.rungs.calm();
    for (const slot of this.slots) {
      slot.faultsUntilMs = 0;
      slot.process?.thaw();
      if (slot.process) slot.process.ambush = null;
    }
    const people = this.#observed("people");
    for (const name of this.#definitions.keys()) void people.topics.pause(name, name === paused);
  }

  /** One good message to every topic, and to each tenant that is held in it. */
  async knock(): Promise<void> {
    for (const { name, breaker } of await this.inner.topics.list()) {
      if (this.ledger.topics.get(name)?.paused) continue;
      for (const tenantId of [null, ...breaker.tenants.map((one) => one.tenantId)])
        this.#send(SLOTS - 1, "one", name, [[{ n: ++this.#beats, do: "o" }, { tenantId }]]);
    }
  }

  /** One good message to each that still has something to do: an outage looks like nothing but bad messages. */
  heartbeat(): void {
    const { ledger } = this;
    const done = new Set<string>();
    for (const { message } of ledger.pending) {
      const name = JSON.stringify([message.topic, message.tenantId]);
      if (done.has(name) || ledger.topics.get(message.topic)?.paused) continue;
      done.add(name);
      this.#send(SLOTS - 1, "one", message.topic, [[{ n: ++this.#beats, do: "o" }, { tenantId: message.tenantId }]]);
    }
  }

  /** Kept under the key that it is sent with: again under another one it would be another operation. */
  #give({ slot, how, topic, sent }: Extract<Action, { kind: "send" }>): void {
    const own = sent.map((one) => this.#ownKey(one));
    for (const one of own) this.#sent.set(one.n, { topic, sent: one, direct: isDirect(how) });
    this.#send(slot, how, topic, own.map(fieldsOf));
  }

  /** What deliver() was given may wait below the store, and under its key only for a person if another one has it by then. */
  #ownKey({ keyOf, ...sent }: Sent): Sent {
    return keyOf === undefined || this.#sent.get(keyOf)?.direct ? sent : { ...sent, keyOf };
  }

  #send(slot: number, how: How, topic: string, messages: readonly (readonly [Script: object, fields: MessageFields])[]): void {
    const { makegood, ids, process } = this.slots[slot] as Slot;
    const name = topic as TopicName;
    const [first] = messages;
    if (!makegood || !process || !first) return;
    const by = `${process.name} ${how}`;
    if (!isDirect(how))
      for (const [payload, fields] of messages)
        this.said.send(how === "text" ? oddly(payload) : JSON.stringify(payload), name, fields);
    const accepted = (results: readonly { id: string }[]): void => {
      for (const { id } of results) this.#told(id, by);
    };
    const refused = (error: unknown): void => this.#world.note(`${by} refused: ${errorText(error)}`);
    if (how === "one") {
      makegood.enqueue(name, first[0], first[1]).then((result) => accepted([result]), refused);
    } else if (how === "many") {
      const batch = messages.map(([payload, fields]) => ({ payload, ...fields }));
      makegood.enqueueMany(name, batch).then(accepted, refused);
    } else if (how === "text") {
      const texts = messages.map(([payload, fields]) => ({ topic: name, payloadText: oddly(payload), ...fields }));
      makegood.enqueueText(texts).then(accepted, refused);
    } else {
      this.#deliver(makegood, process, name, first[0], { ...first[1], id: ids() }, how === "store_first");
    }
  }

  #deliver(
    makegood: Makegood,
    process: SimProcess,
    name: TopicName,
    payload: object,
    fields: MessageFields,
    storeFirst: boolean,
  ): void {
    const { id = "", key = null, tenantId = null } = fields;
    const text = JSON.stringify(payload);
    const rest = { payloadHash: "", delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null };
    this.ledger.given.set(id, { ...rest, id, key, tenantId, topic: name, payload: text });
    // What is accepted below the store is promised only as long as this process lives.
    const call = { ...fields, delayMs: 0, storeFirst };
    this.said.send(text, name, fields, true);
    void makegood.deliver(name, payload, call).then((result) => {
      this.#world.note(`${process.name} deliver ${id} ${result.kind} ${result.stored}`);
      if (result.stored === "primary") this.#told(result.id, `${process.name} deliver`);
      else if (result.stored !== null)
        this.rungs.kept.push({ process, rung: result.stored, id: result.id, topic: name, tenantId, key: result.key });
      if (result.kind === "delivered" && !this.receivers.took(name, tenantId, result.key))
        this.#world.violated("one effect", `deliver() says that ${id} was delivered, and nobody has it`);
    });
  }

  /** Said by the producer that gave something in and was told that it is there (I1). */
  #told(id: string, by: string): void {
    if (this.ledger.given.has(id) && (this.ledger.entries.has(id) || this.ledger.wasPruned(id))) return;
    this.#world.violated("I1", `${by} was told that ${id} is accepted, and it is not there`);
  }

  #decide({ slot, action, at, fence, twice }: Extract<Action, { kind: "decide" }>): void {
    const { makegood, process } = this.slots[slot] as Slot;
    const { pending, undecided, entries } = this.ledger;
    // Now and then about whatever it is: most of it is not theirs to decide.
    const ofPending = action === "cancel" || action === "reschedule" || (action === "discard" && at % 3 === 0);
    const pool = at % 5 === 0 ? entries.values() : ofPending ? pending : undecided;
    const all = [...pool];
    const entry = all[at % Math.max(1, all.length)];
    if (!makegood || !process || !entry) return;
    const revision = fence === "none" ? undefined : entry.revision + (fence === "stale" ? 1 : 0);
    const press = (): void => {
      const said = { actor: "person", reason: reasonFor(revision), revision, delayMs: (at % 7) * 500 };
      makegood[action](entry.message.id, said).catch((error) => {
        const code = isMakegoodError(error) ? error.code : errorText(error);
        if (!isMakegoodError(error)) this.#world.violated("I2", `${action} threw ${code}`);
      });
    };
    press();
    if (twice) press();
  }

  #start(at: number): void {
    const slot = this.slots[at] as Slot;
    const { world, seed, keptMs } = this.#options;
    const skewed = this.#skew.chance(0.5);
    const skew = skewed
      ? { wallMs: this.#skew.between(-120_000, 120_000), rate: this.#skew.pick([0.95, 1, 1.05]) }
      : { wallMs: 0, rate: 1 };
    const process = new SimProcess(world, `p${at}.${++slot.started}`, seed, skew);
    world.note(`${process.name} starts`);
    Object.assign(slot, { process, makegood: null, worker: null, ids: createIds(process.clock, process.random) });
    const faults = (): Faults => (world.nowMs < slot.faultsUntilMs ? slot.faults : this.#usual);
    const sink = this.receivers.sinkOf(process);
    const made = createMakegood({
      store: faultyStore(world, process, this.#observed(process.name), faults),
      topics: [handlerTopic((_payload, delivery, context) => this.receivers.handle(process, delivery, context))],
      sinkFor: (record) => (record.name === TOPICS.handler ? undefined : sink),
      clock: process.clock,
      random: process.random,
      ...this.rungs.of(process, at),
      recovery: false,
      sharedStore: true,
      startsWithoutStore: true,
      errorLog: () => {},
      log: "silent",
      concurrency: CONCURRENCY,
      keptMs,
    });
    made.then(
      (makegood) => {
        slot.makegood = makegood;
        if (at < WORKERS) slot.worker = makegood.work();
      },
      (error) => world.violated("I1", `${process.name} does not start: ${errorText(error)}`),
    );
  }

  #kill(at: number, downMs: number): void {
    const slot = this.slots[at];
    if (!slot?.process?.alive) return;
    this.#world.note(`${slot.process.name} is killed`);
    slot.process.die();
    Object.assign(slot, { makegood: null, worker: null });
    this.#world.after(downMs, () => this.#start(at));
  }

  #stop(at: number, downMs: number): void {
    const slot = this.slots[at] as Slot;
    const { makegood, process } = slot;
    if (!makegood || !process?.alive) return;
    this.#world.note(`${process.name} stops`);
    Object.assign(slot, { makegood: null, worker: null });
    void makegood.close({ drainMs: 1_000 }).then(() => {
      process.die();
      this.#world.after(downMs, () => this.#start(at));
    });
  }

  /** Everybody stops in good order; true once all of them have. */
  close(): () => boolean {
    const left = new Set<SimProcess>();
    for (const slot of this.slots) {
      const { makegood, process } = slot;
      if (!makegood || !process?.alive) continue;
      left.add(process);
      void makegood.close({ drainMs: 1_000 }).then(() => left.delete(process));
    }
    return () => left.size === 0;
  }
}

/** What is sent beyond it is not sent: how long a backlog takes is not what is tested here. */
const BACKLOG_MAX = 150;

const RESTARTED_MS = 300;

const NOTHING: Slot = {
  process: null,
  makegood: null,
  worker: null,
  started: 0,
  faults: CALM,
  faultsUntilMs: 0,
  ids: () => "",
};
