/**
 * One process of the black-box run: calls deliver() several at a time on PostgreSQL, Redis and a journal that others share, works on what is
 * stored, and says what each call returned. It may be killed or stopped at any moment; SIGTERM ends it in order.
 */
const options = JSON.parse(process.argv[2]);
const load = (path) => import(`file://${options.dist}/${path}`);
const { createMakegood, topic } = await load("index.js");
const { createPostgresStore } = await load("store/postgres/index.js");
const { createRedisStore } = await load("store/redis/index.js");
const { createJournal } = await load("store/journal/index.js");

const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);

// A small generator of our own, so that a seed gives the same calls.
let state = options.seed >>> 0;
const chance = () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};

const journal = createJournal({ directory: options.directory, goneMs: options.goneMs });
const mg = await createMakegood({
  log: "silent",
  store: createPostgresStore({ url: options.url, connectTimeoutMs: 1_000, queryTimeoutMs: 2_000, poolMax: 6 }),
  secondary: createRedisStore({ redis: options.redis, connect: { timeoutMs: 1_000 } }),
  journal,
  topics: [
    topic(options.topic, {
      sink: { kind: "http", url: options.receiver },
      timeoutMs: 1_000,
      leaseMs: 2_000,
      retry: { attemptsMax: 200, baseMs: 50, maxMs: 500 },
    }),
  ],
  errorLog: (line) => say({ type: "error", line }),
  pollMs: 100,
});
mg.work({ maintenance: true });

let stopping = false;
process.on("SIGTERM", () => {
  stopping = true;
  void mg
    .close({ drainMs: 3_000 })
    .then(() => journal.close())
    .then(() => process.exit(0));
});
say({ type: "ready" });

let n = 0;
const caller = async () => {
  while (!stopping && n < options.count) {
    const key = `${options.name}-${n++}`;
    const storeFirst = chance() < 0.3;
    const result = await mg.deliver(options.topic, { key }, { key, storeFirst, timeoutMs: 500, budgetMs: 3_000 });
    say({ type: "result", ...result, body: undefined });
  }
};
await Promise.all(Array.from({ length: options.atOnce }, caller));
say({ type: "finished" });
