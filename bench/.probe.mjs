import { makeDirectory } from "./services/directory.mjs";
import { startPostgres } from "./services/postgres.mjs";
import { makePool } from "./lib/postgres-tables.mjs";
import { load } from "./lib/load.mjs";
import { drain } from "./lib/workers.mjs";
const d = makeDirectory(); const pgs = await startPostgres(d.path); const pool = makePool(pgs.url, 4);
const context = { pgUrl: pgs.url, pool }; const N = 30000;
for (let i = 0; i < 3; i++) for (const dist of process.argv.slice(2)) { process.env.BENCH_DIST = dist; const peer = (await import(`./peers/${dist === "raw" ? "raw" : "makegood"}.mjs?${dist}`)).default; if (i === 0) await peer.setup(context);
  await peer.reset(context, "drain"); await load(peer, context, N);
  const r = await drain(peer, context, { count: N, windowSize: 5000, timeoutMs: 60000 });
  console.log(dist, "rate", r.rate | 0, "cpu", r.cpuUsPerMessage.toFixed(1), r.handled, r.distinct, r.windowsMs.map((x) => Math.round(x - r.windowsMs[0])).join(" ")); }
await pool.end(); await pgs.stop(); d.remove();
