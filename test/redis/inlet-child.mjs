// An inlet process for the kill tests. Its store is a hash in the same Redis, written once per key; it kills itself with
// SIGKILL at a chosen point: before the commit, after it and before the acknowledgement, or after that.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createClient } from "redis";

const { dist, url, point, at, killer, ...options } = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(dist, path)).href);
const { startInlet } = await load("store/redis/streams/inlet.js");
const { fromNodeRedis } = await load("store/redis/port.js");

const redis = fromNodeRedis(createClient({ url }));
const die = () => process.kill(process.pid, "SIGKILL");
let batches = 0;
let settles = 0;

const port = {
  ...redis,
  async send(key, args, how) {
    const reply = await redis.send(key, args, how);
    // Scripts with the group as their argument are the ends of entries.
    if (args[0] === "EVALSHA" && args.includes("workers") && point === "settled" && ++settles >= at) die();
    return reply;
  },
};

startInlet({
  ...options,
  redis: port,
  read: ({ fields }) => ({ topic: "a/orders", payloadText: fields.body }),
  async accept(messages) {
    batches++;
    if (messages.some(({ payloadText }) => payloadText === killer)) die();
    if (point === "before" && batches >= at) die();
    for (const { key, payloadText } of messages) {
      await redis.send(null, ["HINCRBY", "handed", key, "1"]);
      await redis.send(null, ["HSETNX", "accepted", key, payloadText]);
    }
    if (point === "after" && batches >= at) die();
  },
});
