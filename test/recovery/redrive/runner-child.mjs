// A process that runs redrives and nothing else, and tells of each batch before and after it is sent, so that the parent can kill it
// exactly there. One JSON object a line.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const options = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(join(options.dist, path)).href);
const { createPostgresStore } = await load("store/postgres/index.js");
const { createRecords } = await load("recovery/records.js");
const { createRedrives } = await load("recovery/redrive/redrives.js");
const { createEvents } = await load("observe/events.js");
const { createIds } = await load("platform/ids.js");
const { systemClock } = await load("platform/clock.js");

const say = (fact) => process.stdout.write(`${JSON.stringify(fact)}\n`);
const store = createPostgresStore({ url: options.url, schema: options.schema, poolMax: 2 });
await store.open();
const inner = createRecords(store.home).redrives;
const redrives = {
  ...inner,
  async send(...args) {
    say({ type: "sending", items: args[2].length });
    const result = await inner.send(...args);
    say({ type: "sent", ...result });
    return result;
  },
};
const events = createEvents();
events.on((event) => say(event));
const ids = createIds();
const { runner } = createRedrives({
  recovery: { redrives },
  store,
  events,
  ids,
  clock: systemClock,
  owner: `runner-${process.pid}`,
  serves: () => true,
  checkPayload: () => {},
  settings: options.settings,
});
runner.start();
say({ type: "ready" });
process.on("SIGTERM", async () => {
  await runner.stop();
  await store.close();
});
