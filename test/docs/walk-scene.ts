/**
 * Both walks of docs/walk.md, walked: one message is posted and delivered, another one dies, is grouped, evaluated, redriven
 * and healed, on PostgreSQL and with a receiver that listens. A call of the store is the border between two steps; what would
 * run beside the walk (a hint, a further look, the turn of a redrive) is held back until the step it belongs to has come.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createMakegood, topic } from "../../src/index.ts";
import { createLog } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Recovery } from "../../src/recovery/recovery.ts";
import { createApp } from "../../src/server/app.ts";
import { kernelOf } from "../../src/server/kernel.ts";
import type { Home, WithHome } from "../../src/store/home.ts";
import type { Store, WakeHint } from "../../src/store/store.ts";
import { dropSchema, openStore } from "../support/postgres.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { FunctionTrace, type Ran } from "./function-trace.ts";

/** A door that those who come wait before while it is shut. */
class Gate {
  #opened: Promise<void> = Promise.resolve();
  #open: () => void = () => undefined;

  shut(): void {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#open();
  }

  get passed(): Promise<void> {
    return this.#opened;
  }
}

class Walk {
  readonly trace = new FunctionTrace();
  /** Looks for work, takes of redrives, looks at what became of what they sent. */
  readonly gates = { hints: new Gate(), looks: new Gate(), takes: new Gate(), endings: new Gate() };
  #step: string | null = null;

  /** From one step into the next, if the walk is there. */
  border(from: string, to: string | null): void {
    if (this.#step === from) this.enter(to);
  }

  at(step: string): boolean {
    return this.#step === step;
  }

  enter(step: string | null): void {
    this.trace.enter(step);
    this.#step = step;
  }
}

type Method = (...args: never[]) => Promise<unknown>;

/** The same object; before and after the calls of these methods something is done. */
function around<T extends object>(
  object: T,
  methods: { [K in keyof T]?: { before?(arg: never): unknown; after?(result: never): unknown } },
): T {
  const wrapped = Object.create(object) as Record<string, unknown>;
  for (const [name, { before, after }] of Object.entries(methods) as [string, { before?: Method; after?: Method }][]) {
    const call = (object as Record<string, Method>)[name] as Method;
    wrapped[name] = async (...args: never[]) => {
      await before?.(...args);
      const result = await call.apply(object, args);
      await after?.(result as never);
      return result;
    };
  }
  return wrapped as T;
}

interface Border {
  before?(): unknown;
  after?(): unknown;
}

/** The same home; before and after what it does under these names something is done. */
function walkedHome(home: Home, walk: Walk): Home {
  const { gates } = walk;
  const border = (from: string, to: string | null) => () => walk.border(from, to);
  let judged = 0;
  const borders: Record<string, Border | undefined> = {
    "read groups": { after: border("find", "place") },
    ingest: { before: border("place", "count"), after: border("count", "evaluate") },
    "write a candidate": {
      before() {
        // The first says that it is being evaluated.
        if (walk.at("evaluate") && ++judged === 2) walk.border("evaluate", "suggest");
      },
      after: border("suggest", null),
    },
    "start a redrive": { before: border("execute", "freeze"), after: border("freeze", "execute") },
    "claim a redrive": { before: () => gates.takes.passed },
    "send items of a redrive": {
      after() {
        gates.endings.shut();
        walk.border("send", "again");
      },
    },
    "look at a redrive": { before: () => gates.endings.passed },
    "change a redrive": { before: border("heal", "end") },
  };
  async function walked<T>(during: string, call: () => Promise<T>): Promise<T> {
    await borders[during]?.before?.();
    const result = await call();
    await borders[during]?.after?.();
    return result;
  }
  return {
    ...home,
    read: (during) => (text, values, how) => walked(during, () => home.read(during)(text, values, how)),
    write: (during) => (text, values, how) => walked(during, () => home.write(during)(text, values, how)),
    transaction: (during, work) => walked(during, () => home.transaction(during, work)),
  };
}

function walkedStore(store: Store & WithHome, walk: Walk): Store {
  const { gates } = walk;
  const border = (from: string, to: string | null) => () => walk.border(from, to);
  const walked = around<Store>(store, {
    enqueue: { before: border("accept", "write"), after: border("write", "accept") },
    lanes: { before: () => gates.looks.passed, after: border("look", "plan") },
    claim: {
      before() {
        walk.border("plan", "claim");
        // A claim that did not bring all it asked for looks again: after the walk.
        gates.looks.shut();
      },
      after: border("claim", "attempt"),
    },
    settle: {
      before: border("answer", "settle"),
      after() {
        walk.border("settle", "tell");
        walk.border("die", "find");
        walk.border("again", "heal");
        gates.endings.open();
      },
    },
  });
  const wake = (listener: (hint: WakeHint) => void) => store.wake((hint) => void gates.hints.passed.then(() => listener(hint)));
  return Object.defineProperties(walked, {
    wake: { value: wake },
    home: { value: walkedHome(store.home, walk) },
  });
}

/** What a listener is called with first. */
function once(listen: (found: (value: never) => void) => void): Promise<unknown> {
  return new Promise((resolve) => listen(resolve));
}

async function kernel(walk: Walk, receiver: Receiver) {
  const store = await openStore();
  const charge = topic("shop/charge", { sink: { kind: "http", url: receiver.url }, retry: { attemptsMax: 1 } });
  // No look and no ingest by the clock: the hints and events of the walk are what they follow.
  const often = { pollMs: 60_000, recovery: { pollMs: 60_000 } };
  const mg = await createMakegood({ ...often, store: walkedStore(store, walk), topics: [charge] });
  const log = createLog({ clock: systemClock, format: "json", level: "error", write: () => undefined });
  const config = { payload_bytes_max: 1_000_000, sink_allow: [] };
  const behind = kernelOf({ config, mg, log, clock: systemClock, worker: null, draining: () => false });
  const app = createApp({ kernel: behind, tokens: [], anonymous: "local", hosts: null });
  const post = async (path: string, body: unknown): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const request = new Request(`http://localhost${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const answer = await app.fetch(request);
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  };
  const close = async (): Promise<void> => {
    for (const gate of Object.values(walk.gates)) gate.open();
    await mg.close();
    await dropSchema(store.schema);
  };
  return { mg, recovery: mg.recovery as Recovery, post, close };
}

type Kernel = Awaited<ReturnType<typeof kernel>>;

/** Until an attempt of the topic has been announced, and what follows from it has had its turn. */
async function announced({ mg }: Kernel, topicName: string, during: () => Promise<void>): Promise<void> {
  const attempt = once((found) => {
    const off = mg.events.on((event) => {
      if (event.type !== "attempt" || event.topic !== topicName) return;
      off();
      found(undefined as never);
    });
  });
  await during();
  await attempt;
  await new Promise((resolve) => setImmediate(resolve));
}

async function delivered(walk: Walk, parts: Kernel): Promise<void> {
  const { hints, looks } = walk.gates;
  hints.shut();
  await announced(parts, "shop/charge", async () => {
    walk.enter("accept");
    await parts.post("/api/v1/messages", { topic: "shop/charge", payload: { n: 1 }, key: "one" });
    walk.enter("look");
    hints.open();
  });
  walk.enter(null);
  looks.open();
}

async function healed(walk: Walk, parts: Kernel, receiver: Receiver): Promise<void> {
  const { recovery, post } = parts;
  const { looks, takes } = walk.gates;
  const suggested = once((found) => recovery.on("on_suggestion_generated", found));
  receiver.default(() => {
    walk.enter("die");
    return { status: 429 };
  });
  // From here on the worker looks as often as it likes: the looks belong to the first walk.
  looks.shut = () => undefined;
  await announced(parts, "recovery/evaluate", () =>
    post("/api/v1/messages", { topic: "shop/charge", payload: { n: 2 }, key: "two" }),
  );
  const { candidate } = (await suggested) as { candidate: { candidateId: number } };
  receiver.default({ status: 200 });
  const ended = once((found) => recovery.on("on_execution_complete", found));
  takes.shut();
  walk.enter("execute");
  await post(`/api/v1/recovery/candidates/${candidate.candidateId}/execute`, { reason: "the receiver was mended" });
  walk.enter("send");
  takes.open();
  await ended;
  walk.enter(null);
}

/** Step → what ran in it. */
export async function walkBoth(): Promise<ReadonlyMap<string, Ran>> {
  const walk = new Walk();
  await using receiver = await startReceiver(() => {
    walk.border("attempt", "answer");
    return { status: 200 };
  });
  const parts = await kernel(walk, receiver);
  try {
    parts.mg.work();
    // The first look, the note of the worker and the recovery engine's own topics: they belong to no walk.
    await pause(500);
    walk.trace.start();
    await delivered(walk, parts);
    await healed(walk, parts, receiver);
    walk.trace.stop();
  } finally {
    await parts.close();
  }
  return walk.trace.steps;
}
