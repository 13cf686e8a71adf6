/**
 * A settlement client in a process of its own, on the Redis port or on PostgreSQL, that kills itself with SIGKILL at a named step of a finalize,
 * of a replay, of a write to the journal or of the way up from it. It writes one JSON line per result; a line that was not written is a
 * promise that was not made.
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const options = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(options.dist, path)).href);
const { createSettlementClient, createServiceSigner } = await load("presets/index.js");
const { MakegoodError } = await load("index.js");

let left = options.nth ?? 1;
const step = (name) => {
  if (name === options.killAt && --left === 0) process.kill(process.pid, "SIGKILL");
};
const say = (fact) =>
  new Promise((resolve) => {
    process.stdout.write(`${JSON.stringify(fact)}\n`, resolve);
  });

/** Before a call leaves, when it has left, and when its answer is here. */
function stepping(target, names) {
  const wrapped =
    (name) =>
    async (...args) => {
      step(`${name}:before`);
      if (options.away) throw new MakegoodError("store_unavailable", "the store is away");
      // A store that says yes and keeps nothing, to show that the loop finds out.
      const call =
        options.forgets === "store" && name === "enqueue"
          ? target.enqueue([]).then(() => [{ kind: "accepted", id: args[0][0].id }])
          : target[name](...args);
      setImmediate(() => step(`${name}:during`));
      const answer = await call;
      step(`${name}:after`);
      return answer;
    };
  const methods = new Map(names.map((name) => [name, wrapped(name)]));
  return new Proxy(target, { get: (of, name) => methods.get(name) ?? of[name] });
}

/** A clock that is ahead: leases and waits of the children before are over, and so is their presence in the journal. */
const clock = {
  wallMs: () => Date.now() + options.aheadMs,
  monotonicMs: () => performance.now(),
  after(ms, run, background) {
    const timer = setTimeout(run, ms);
    if (background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

const NAMES = options.away ? ["enqueue", "check"] : ["enqueue", "check", "lanes", "claim", "settle"];
const { createJournal } = await load("store/journal/index.js");

async function onPort() {
  const { Redis } = await import("ioredis");
  const { createRedisDLQStore } = await load("store/redis/dlq-port/redis-dlq-store.js");
  const { fromIoredis } = await load("store/redis/port.js");
  const redis = fromIoredis(new Redis({ host: "127.0.0.1", port: options.redisPort, lazyConnect: true }));
  const port = createRedisDLQStore(redis, { now: () => clock.wallMs() });
  const journal = options.journalDir && createJournal({ directory: options.journalDir, goneMs: 300, clock });
  return { clock, dlqStore: { ...port, store: stepping(port.store, NAMES) }, makegood: journal ? { journal } : {} };
}

async function onPostgres() {
  const { createPostgresStore } = await load("store/postgres/index.js");
  const plain = createPostgresStore({ url: options.url, schema: options.schema, poolMax: 4 });
  // Gone sooner than by default: the next child does not wait for long.
  const journal = options.journalDir && createJournal({ directory: options.journalDir, goneMs: 300 });
  // Time is the database's, and the test moves it there; this is only what comes after a try.
  return { dlqStore: stepping(plain, NAMES), retryDelaysMs: [1], makegood: journal ? { journal } : {} };
}

/** The journal's own calls of the disk. */
const probe = await open(process.execPath);
const files = Object.getPrototypeOf(probe);
await probe.close();
for (const name of ["write", "datasync", "truncate"]) {
  const plain = files[name];
  files[name] = async function (...args) {
    step(`${name}:before`);
    const forgets = options.forgets === "disk" && name === "write";
    const result = forgets ? { bytesWritten: args[2] } : await plain.apply(this, args);
    step(`${name}:after`);
    return result;
  };
}

const signer = createServiceSigner({ alg: "HS256", ...options.token });
const s2sSigner = {
  async sign(claims) {
    step("sign:before");
    const token = await signer.sign(claims);
    step("sign:after");
    // The request is on its way when this runs.
    setTimeout(() => step("send:during"), 3);
    return token;
  },
};
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const { billingUrl, maxRetries, timeoutMs } = options;
const place = options.kind === "port" ? await onPort() : await onPostgres();
const client = createSettlementClient({ billingUrl, s2sSigner, maxRetries, timeoutMs, log: silent, ...place });

for (const request of options.requests) {
  const { status, survives } = await client.finalize(request);
  await say({ type: "result", id: request.reservation_id, status, survives });
}
const sizeNow = () => client.getDLQSize().catch(() => null);
/** A step may come a moment later, such as the way up from the journal; without one to come it is over when nothing waits. */
const untilMs = performance.now() + options.lingerMs;
do {
  await client.replayDeadLetters();
  if (options.killAt === null && (await sizeNow()) === 0) break;
  await sleep(20);
} while (performance.now() < untilMs);
await say({ type: "done", size: await sizeNow() });
await client.close();
process.exit(0);
