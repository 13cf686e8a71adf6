/** A process that keeps entries in a journal and says so; it is killed. */
const { dist, directory, entries } = JSON.parse(process.argv[2]);
const { createJournal } = await import(`file://${dist}/store/journal/index.js`);
const journal = createJournal({ directory });
await journal.open();
for (const entry of entries) await journal.append(entry);
process.stdout.write("kept\n");
setInterval(() => {}, 60_000);
