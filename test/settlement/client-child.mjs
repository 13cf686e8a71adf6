/**
 * A settlement client in a process of its own, on the Redis port, that kills itself with SIGKILL at a named step of a finalize or
 * of a replay. It writes one JSON line per result; a line that was not written is a promise that was not made.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";

const options = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(options.dist, path)).href);
const { createSettlementClient, createServiceSigner } = await load("presets/index.js");
const { createRedisDLQStore } = await load("store/redis/dlq-port/redis-dlq-store.js");
const { fromIoredis } = await load("store/redis/port.js");

let left = options.nth ?? 1;
const step = (name) => {
  if (name === options.killAt && --left === 0) process.kill(process.pid, "SIGKILL");
};
const say = (fact) =>
  new Promise((resolve) => {
    process.stdout.write(`${JSON.stringify(fact)}\n`, resolve);
  });

const redis = fromIoredis(new Redis({ host: "127.0.0.1", port: options.redisPort, lazyConnect: true }));
const plain = createRedisDLQStore(redis, { now: () => Date.now() + options.aheadMs });
/** Before a call leaves, when it has left, and when its answer is here. */
const dlqStore = new Proxy(plain, {
  get(target, name) {
    const value = target[name];
    if (typeof value !== "function") return value;
    return async (...args) => {
      step(`${name}:before`);
      const call = value.apply(target, args);
      setImmediate(() => step(`${name}:during`));
      const answer = await call;
      step(`${name}:after`);
      return answer;
    };
  },
});
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
const client = createSettlementClient({ billingUrl, s2sSigner, dlqStore, maxRetries, timeoutMs, log: silent });

for (const request of options.requests) {
  const { status } = await client.finalize(request);
  await say({ type: "result", id: request.reservation_id, status });
}
for (let i = 0; i < options.passes; i++) await say({ type: "pass", ...(await client.replayDeadLetters()) });
await say({ type: "done", size: await client.getDLQSize() });
await client.close();
process.exit(0);
