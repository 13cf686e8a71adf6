// A process in a network of its own with ten local ports: takes all of them, sends messages to a receiver of its own, says what became of
// them, gives the ports back and says it again.
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { say, sleep, total } from "./child-facts.mjs";

const PORT = 39_000;
const { dist, count } = JSON.parse(process.argv[2]);
const { createMakegood, createMemoryStore, topic } = await import(pathToFileURL(join(dist, "index.js")).href);

const arrived = new Set();
const receiver = createServer((request, response) => {
  arrived.add(request.headers["idempotency-key"]);
  request.resume().on("end", () => response.end("ok"));
});
await new Promise((resolve) => receiver.listen(PORT, "127.0.0.1", resolve));
const taken = [];
for (let failed = false; !failed; ) {
  const socket = connect(PORT, "127.0.0.1");
  failed = await new Promise((resolve) => {
    socket.once("connect", () => resolve(false)).on("error", (error) => resolve(error.code === "EADDRNOTAVAIL"));
  });
  if (!failed) taken.push(socket);
}

const events = [];
const store = createMemoryStore();
const hook = topic("port/none", { sink: { kind: "http", url: `http://127.0.0.1:${PORT}/` }, retry: { attemptsMax: 1 } });
const mg = await createMakegood({
  store,
  topics: [hook],
  log: "silent",
  recovery: false,
  pollMs: 50,
  onEvent: (event) => events.push(event),
});
mg.work();
for (let n = 0; n < count; n++) await mg.enqueue(hook, { n }, { key: `k-${n}` });
const unserved = () => events.filter(({ type }) => type === "unserved");
// Twice rested: it goes on trying.
while (unserved().filter(({ restMs }) => restMs !== null).length < 2) await sleep(20);
const attempts = () => events.filter(({ type }) => type === "attempt").length;
say({
  type: "exhausted",
  taken: taken.length,
  codes: [...new Set(unserved().map(({ code }) => code))],
  attempts: attempts(),
  arrived: arrived.size,
});
// A reset leaves no port in TIME_WAIT.
for (const socket of taken) socket.resetAndDestroy();
while ((await total(store, "delivered")) + (await total(store, "dead")) < count) await sleep(20);
say({ type: "delivered", delivered: await total(store, "delivered"), dead: await total(store, "dead"), arrived: arrived.size });
await mg.close();
process.exit(0);
