// A process with few descriptors that takes all of them, sends messages to a receiver by address and by name, says what became of
// them, gives the descriptors back and says it again.
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { say, sleep, total } from "./child-facts.mjs";

const { dist, port, count } = JSON.parse(process.argv[2]);
const { createMakegood, createMemoryStore, topic } = await import(pathToFileURL(join(dist, "index.js")).href);

const hook = (name, host) => topic(name, { sink: { kind: "http", url: `http://${host}:${port}/` }, retry: { attemptsMax: 1 } });
const topics = [hook("fd/address", "127.0.0.1"), hook("fd/name", "localhost")];
const events = [];
const store = createMemoryStore();
const mg = await createMakegood({
  store,
  topics,
  log: "silent",
  recovery: false,
  pollMs: 50,
  onEvent: (event) => events.push(event),
});
mg.work();

const taken = [];
try {
  for (;;) taken.push(openSync("/dev/null", "r"));
} catch (error) {
  if (error.code !== "EMFILE") throw error;
}

for (let n = 0; n < count; n++) for (const one of topics) await mg.enqueue(one, { n }, { key: `${one.name} ${n}` });
const unserved = () => events.filter(({ type }) => type === "unserved");
// Twice rested: it goes on trying.
while (unserved().filter(({ restMs }) => restMs !== null).length < 4) await sleep(20);
const attempts = () => events.filter(({ type }) => type === "attempt").length;
say({
  type: "exhausted",
  codes: [...new Set(unserved().map(({ code }) => code))],
  topics: [...new Set(unserved().map((event) => event.topic))].sort(),
  pending: (await total(store, "pending")) + (await total(store, "processing")),
  attempts: attempts(),
  breakers: events.filter(({ type }) => type === "breaker").length,
});
for (const fd of taken) closeSync(fd);
while ((await total(store, "delivered")) + (await total(store, "dead")) < 2 * count) await sleep(20);
say({ type: "delivered", delivered: await total(store, "delivered"), dead: await total(store, "dead"), attempts: attempts() });
await mg.close();
