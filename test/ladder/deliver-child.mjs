/**
 * A process that calls deliver() and says what each call returned. Its primary store can be away, so that entries go to the journal and are
 * drained or attempted from there; `stopAt` names the one step where it stops for ever, to be killed.
 */
const options = JSON.parse(process.argv[2]);
const load = (path) => import(`file://${options.dist}/${path}`);
const { createMakegood, httpSink, MakegoodError, topic } = await load("index.js");
const { createPostgresStore } = await load("store/postgres/index.js");
const { createJournal } = await load("store/journal/index.js");

const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);
const forever = new Promise(() => {});
const stop = (at) => {
  say({ type: "stopped", at });
  return forever;
};

const plain = createPostgresStore({ url: options.url, schema: options.schema, poolMax: 4 });
let away = options.away;
let calls = 0;
const at = (step) => options.stopAt === step && calls >= (options.after ?? 3);

const store = Object.assign(Object.create(plain), {
  async enqueue(messages, how) {
    if (away) throw new MakegoodError("store_unavailable", "away, as the test wants it");
    if (at("before enqueue")) return stop("before enqueue");
    const results = await plain.enqueue(messages, how);
    if (how?.atomic === "each" && at("drain: before done")) return stop("drain: before done");
    return at("after enqueue") ? stop("after enqueue") : results;
  },
  async check() {
    if (away) throw new MakegoodError("store_unavailable", "away, as the test wants it");
    return plain.check();
  },
  async claim(request) {
    if (at("before claim")) return stop("before claim");
    const claimed = await plain.claim(request);
    return at("after claim") ? stop("after claim") : claimed;
  },
  async settle(settles) {
    if (at("before settle")) return stop("before settle");
    const results = await plain.settle(settles);
    return at("after settle") ? stop("after settle") : results;
  },
});

const inner = createJournal({ directory: options.directory, goneMs: 500 });
const journal = Object.assign(Object.create(inner), {
  directory: inner.directory,
  open: () => inner.open(),
  close: () => inner.close(),
  stats: () => inner.stats(),
  takeOver: () => inner.takeOver(),
  remember: (known) => inner.remember(known),
  remembered: () => inner.remembered(),
  quarantine: (id, reason) => inner.quarantine(id, reason),
  list: () => inner.list(),
  changes: () => inner.changes(),
  read: (ids) => inner.read(ids),
  async begin(id, attempt) {
    if (at("below: before begin")) return stop("below: before begin");
    const begun = await inner.begin(id, attempt);
    return at("below: after begin") ? stop("below: after begin") : begun;
  },
  async ended(id, after) {
    if (at("below: before the mark")) return stop("below: before the mark");
    await inner.ended(id, after);
    return at("below: after the mark") ? stop("below: after the mark") : undefined;
  },
  async append(entry) {
    if (at("before append")) return stop("before append");
    const appended = options.lies ? Promise.resolve({ kind: "kept" }) : inner.append(entry);
    if (at("in append")) {
      void appended;
      return stop("in append");
    }
    const result = await appended;
    return at("after append") ? stop("after append") : result;
  },
  async done(ids) {
    if (at("below: before done")) return stop("below: before done");
    await inner.done(ids);
    if (at("below: after done")) return stop("below: after done");
    return at("drain: after done") ? stop("drain: after done") : undefined;
  },
});

const real = httpSink({ url: options.receiver, trusted: true });
const sink = {
  kind: "http",
  async deliver(delivery, context) {
    const below = delivery.attempt > 0 && options.stopAt?.startsWith("below") ? "below: " : "";
    if (at(`${below}before the try`)) return stop(`${below}before the try`);
    const outcome = await real.deliver(delivery, context);
    return at(`${below}after the try`) ? stop(`${below}after the try`) : outcome;
  },
};

const mg = await createMakegood({
  store,
  log: "silent",
  journal,
  openWithinMs: options.openWithinMs,
  topics: [topic(options.topic, { sink, timeoutMs: 2_000, leaseMs: 2_500, retry: { attemptsMax: 50, baseMs: 20, maxMs: 200 } })],
  errorLog: (line) => say({ type: "error", line }),
  pollMs: 50,
});
say({ type: "ready" });
for (let n = 0; n < options.count; n++) {
  away = options.away;
  calls++;
  const key = `${options.prefix}-${n}`;
  const result = await mg.deliver(options.topic, { key, n }, { key, storeFirst: options.storeFirst, budgetMs: 3_000 });
  say({ type: "result", key, ...result });
  if (options.stopAt?.startsWith("drain")) {
    away = false;
    await mg.ladder.drain();
  }
}
say({ type: "finished" });
// What goes on in the background must not be cut off by an end for want of anything else.
setInterval(() => {}, 60_000);
await forever;
