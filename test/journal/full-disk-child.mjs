/**
 * A process whose files may not grow beyond a limit that its shell has set: delivers while its store is away until the journal refuses, goes
 * on for a while, then gets its store back and drains. Says every result and what is left.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { dist, directory, url } = JSON.parse(process.argv[2]);
const { createMakegood, createMemoryStore, MakegoodError, topic } = await import(pathToFileURL(join(dist, "index.js")).href);
const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);

const inner = createMemoryStore();
let away = true;
const guard =
  (call) =>
  async (...args) => {
    if (away) throw new MakegoodError("store_unavailable", "away");
    return call(...args);
  };
const traits = { ...inner.traits, name: "other", survives: "power-loss" };
const store = { ...inner, traits, enqueue: guard(inner.enqueue), check: guard(inner.check) };
const topics = [
  topic("test/full", { sink: { kind: "http", url }, retry: { attemptsMax: 5, baseMs: 3_600_000, maxMs: 3_600_000 } }),
];
const mg = await createMakegood({
  store,
  topics,
  log: "silent",
  journal: { directory },
  errorLog: (line) => say({ type: "error", line }),
});
await mg.store.topics.pause("test/full", true);
let refused = 0;
for (let n = 0; refused < 10 && n < 500; n++) {
  const result = await mg.deliver("test/full", { n, filler: "x".repeat(1_500) }, { key: `k${n}` });
  say({ type: "result", ...result });
  if (result.stored === "memory") refused++;
}
// Nothing of a Makegood keeps a process alive that has nothing else to do, and neither does a listener.
const alive = setInterval(() => {}, 1_000);
const told = new Promise((resolve) => process.once("SIGUSR2", resolve));
say({ type: "full", waiting: mg.ladder.status().waiting });
await told;
clearInterval(alive);
away = false;
const drained = await mg.ladder.drain();
const { data } = await inner.list({ limit: 1_000 });
say({ type: "drained", drained, stored: data.map(({ key }) => key), waiting: mg.ladder.status().waiting });
away = true;
const again = await mg.deliver("test/full", { after: "the drain" }, { key: "again" });
say({ type: "again", ...again });
await mg.close();
process.exit(0);
