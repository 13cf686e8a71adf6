/** A process that keeps entries in a journal and says each one that is kept, until it is killed. */
import { writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { dist, directory, round } = JSON.parse(process.argv[2]);
const { createJournal } = await import(pathToFileURL(`${dist}/store/journal/index.js`).href);
const { createIds } = await import(pathToFileURL(`${dist}/platform/ids.js`).href);

const ids = createIds();
const journal = createJournal({ directory });
await journal.open();
const fields = { tenantId: null, delayMs: 0, priority: 0, orderingKey: null, traceparent: null, schemaVersion: null };
for (let n = 0; ; n++) {
  const key = `${round}-${n}`;
  const message = { ...fields, id: ids(), topic: "power/journal", key, payload: JSON.stringify({ key }), payloadHash: "" };
  const { kind } = await journal.append({ message, atMs: Date.now() });
  // Written at once: what was said before a SIGKILL must have arrived.
  if (kind === "kept") writeSync(1, `${JSON.stringify({ kept: key })}\n`);
}
