// A worker process for the fault suites: topics with function sinks that misbehave on purpose, and a store that stops at a
// named point, so that the parent can kill it exactly there. It writes one JSON object a line and drains on SIGTERM.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const options = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(options.dist, path)).href);
const { createMakegood, topic } = await load("index.js");
const { createPostgresStore } = await load("store/postgres/index.js");

const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);
process.on("uncaughtException", (error) => {
  say({ type: "uncaught", error: String(error?.stack ?? error) });
  process.exit(70);
});
process.on("unhandledRejection", (error) => {
  say({ type: "unhandled", error: String(error?.stack ?? error) });
  process.exit(71);
});

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const forever = new Promise(() => {});

/** What a function sink does, by name; payload.do overrides the topic's own. */
const HANDLERS = {
  ok: () => undefined,
  say: (_payload, delivery) => say({ type: "delivery", id: delivery.id, attempt: delivery.attempt, pid: process.pid }),
  sleep: (payload, _delivery, { signal }) => Promise.race([sleep(payload.ms ?? 50), aborted(signal)]),
  exit: (payload) => process.exit(payload.code ?? 9),
  exitLater: async (payload) => {
    await sleep(payload.ms ?? 20);
    process.exit(9);
  },
  block: (payload) => {
    const end = performance.now() + payload.ms;
    while (performance.now() < end);
  },
  fail: () => {
    throw new Error("this handler always fails");
  },
};

const aborted = (signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

function handle(spec) {
  return (payload, delivery, context) => {
    const name = payload?.do ?? spec.handler;
    if (spec.tells || payload?.tells) say({ type: "begins", id: delivery.id, attempt: delivery.attempt, do: name });
    return HANDLERS[name](payload ?? {}, delivery, context);
  };
}

/** Stops for ever at one point of the walk, after telling the parent. */
function stoppingStore(store) {
  const at = options.stopAt;
  if (!at) return store;
  const stop = (detail) => {
    say({ type: "stopped", at, ...detail });
    return forever;
  };
  return Object.assign(Object.create(store), {
    claim: async (request) => {
      const claimed = await store.claim(request);
      return at === "after claim" && claimed.length > 0 ? stop({ ids: claimed.map(({ id }) => id) }) : claimed;
    },
    settle: async (settles) => {
      const detail = { ids: settles.map(({ id }) => id) };
      if (at === "before settle") return stop(detail);
      if (at === "in settle") {
        const settling = store.settle(settles);
        say({ type: "stopped", at, ...detail });
        return settling.then(() => forever);
      }
      const results = await store.settle(settles);
      return at === "after settle" ? stop(detail) : results;
    },
  });
}

const plain = createPostgresStore({ url: options.url, schema: options.schema, queryTimeoutMs: options.queryTimeoutMs });
const topics = options.topics.map(({ name, handler, tells, url, ...rest }) =>
  topic(name, { ...rest, sink: url ? { kind: "http", url } : handle({ handler: handler ?? "ok", tells }) }),
);
const mg = await createMakegood({
  log: "silent",
  store: stoppingStore(plain),
  topics,
  concurrency: options.concurrency,
  pollMs: options.pollMs ?? 200,
  drainMs: options.drainMs ?? 5_000,
  onEvent: (event) => {
    if (event.type === "attempt" && event.status === "delivered" && !options.tellsAll) return;
    if (event.type !== "accepted" && event.type !== "claimed") say({ ...event, event: event.type, type: "event" });
  },
});
const worker = mg.work();
process.on("SIGTERM", async () => {
  await mg.close();
  say({ type: "closed" });
  process.exit(0);
});
say({ type: "ready", owner: worker.owner });
