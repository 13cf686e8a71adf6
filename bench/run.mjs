// `npm run bench`: Makegood beside its peers, in the same run, on servers of its own. Asks each question of each peer in
// rotating order, round after round, and ends with one table of ratios, printed and written to bench/RESULTS.md.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { readOptions } from "./lib/options.mjs";
import { benchPath, buildProduct, installPeers, productVersion, versionOf } from "./lib/prepare.mjs";
import { isComplete, writeReport } from "./report.mjs";

/** The rows of the last complete run, and of the last one that was not. */
const completePath = `${benchPath}results.json`;
const partialPath = `${benchPath}results.partial.json`;

async function main() {
  const options = readOptions(process.argv.slice(2));
  if (options.reportOnly) {
    writeReport(JSON.parse(readFileSync(existsSync(completePath) ? completePath : partialPath, "utf8")));
    return 0;
  }
  installPeers();
  if (options.build) buildProduct();

  const questions = {};
  for (const name of options.questions) questions[name] = await import(`./questions/${name}.mjs`);
  const peersOf = (question) =>
    options.peers === null ? question.peers : (question.possible ?? question.peers).filter((key) => options.peers.includes(key));
  const peers = {};
  for (const question of Object.values(questions)) {
    for (const key of peersOf(question)) peers[key] ??= (await import(`./peers/${key}.mjs`)).default;
  }

  // Imported here, because the peers' packages may only just have been installed.
  const { makeDirectory } = await import("./services/directory.mjs");
  const directory = makeDirectory();
  const services = [];
  // Whatever ends this process, the servers it started end with it.
  process.on("exit", () => {
    for (const service of services) service.kill();
    directory.remove();
  });
  // Not once: a second signal must not end the cleaning up half way.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));
  try {
    return await withServices({ options, questions, peers, peersOf, directory, services });
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
}

async function withServices({ options, questions, peers, peersOf, directory, services }) {
  const { startPostgres } = await import("./services/postgres.mjs");
  const { startRedis, redisSettings } = await import("./services/redis.mjs");
  const { makePool } = await import("./lib/postgres-tables.mjs");
  const postgres = await startPostgres(directory.path);
  services.push(postgres);
  const needed = new Set(Object.values(peers).map((peer) => peer.needs));
  const redis = needed.has("redis") ? await startRedis(directory.path) : null;
  if (redis !== null) services.push(redis);
  const redisAlways = needed.has("redis-always") ? await startRedis(directory.path, "always") : null;
  if (redisAlways !== null) services.push(redisAlways);

  // A peer that hangs on to a lock must not hold up the whole run.
  const pool = makePool(postgres.url, 4, { statement_timeout: 120_000 });
  const context = { pgUrl: postgres.url, redis: redis?.connection, redisAlways: redisAlways?.connection, pool };
  for (const peer of Object.values(peers)) await peer.setup(context);

  const results = {
    startedAt: new Date().toISOString(),
    minutes: 0,
    quick: options.quick,
    complete: !options.quick && options.rounds >= 5 && options.peers === null,
    product: productVersion(),
    node: process.version,
    machine: `${cpus().length} × ${cpus()[0].model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${release()}`,
    disk: directory.inMemory ? "memory (tmpfs): fsync costs nothing here, rates are not comparable" : "disk under os.tmpdir()",
    postgres: { version: postgres.version, origin: postgres.origin, settings: postgres.settings },
    redis: redis === null ? null : { version: redis.version, settings: redisSettings },
    peers: Object.values(peers).map(({ key, name, package: pack, settings }) => ({
      key,
      name,
      version: pack === undefined ? null : versionOf(pack),
      settings,
    })),
    /** What Makegood lost, doubled or could not do: the run fails. A peer's trouble is only reported. */
    unsound: [],
    asked: {},
    rows: [],
    checks: [],
    failures: [],
  };
  const startMs = Date.now();
  for (let round = 0; round < options.rounds; round++) {
    for (const [name, question] of Object.entries(questions)) {
      await ask({ name, question, round, keys: peersOf(question), peers, context, directory, sizes: options.sizes, results });
    }
    results.minutes = (Date.now() - startMs) / 60_000;
    writeFileSync(partialPath, `${JSON.stringify(results, null, 1)}\n`);
  }
  await pool.end();
  const merged = save(results, options);
  writeReport(merged);
  return results.unsound.length === 0 ? 0 : 1;
}

/** One question, one round: every peer once, each time beginning with another one. */
async function ask({ name, question, round, keys, peers, context, directory, sizes, results }) {
  const { calibrate } = await import("./lib/measure.mjs");
  const { killStrays } = await import("./lib/workers.mjs");
  const { formatNumber } = await import("./lib/stats.mjs");
  const { fdatasyncPerSecond, cpuLoopMs } = calibrate(directory.path, sizes.calibrationMs);
  results.asked[name] ??= `${new Date().toISOString().slice(0, 16)}Z`;
  results.rows.push({ question: name, round, peer: "machine", metric: "fdatasync", value: fdatasyncPerSecond });
  results.rows.push({ question: name, round, peer: "machine", metric: "cpuLoop", value: cpuLoopMs });

  for (let turn = 0; turn < keys.length; turn++) {
    const peer = peers[keys[(turn + round) % keys.length]];
    const startMs = Date.now();
    const line = [];
    const trouble = (list, what) => {
      const text = `${name}, round ${round + 1}, ${peer.name}: ${what}`;
      list.push(text);
      if (peer.key === "makegood" || peer.ours) results.unsound.push(text);
      console.error(text);
    };
    const reset = async (mode) => {
      await peer.reset(context, mode);
      await context.pool.query("checkpoint");
    };
    try {
      await question.measure(peer, {
        context,
        sizes,
        round,
        fresh: reset,
        record(metric, value) {
          results.rows.push({ question: name, round, peer: peer.key, metric, value });
          line.push(`${metric} ${formatNumber(value)}`);
        },
        check(what, ok, { handled, distinct }) {
          if (!ok) trouble(results.checks, `${what}, handled ${handled}, distinct ${distinct}: not each exactly once`);
        },
      });
    } catch (error) {
      trouble(results.failures, error.message);
    }
    killStrays();
    await reset("drain").catch((error) => console.error(error));
    const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
    console.log(`round ${round + 1}  ${name.padEnd(10)} ${peer.name.padEnd(16)} ${line.join("  ")}  (${seconds} s)`);
  }
}

/** With --merge the rows of questions that were not asked this time stay: ratios are always taken within one question. */
function save(results, { merge, questions }) {
  const merged = { ...results };
  if (merge && existsSync(completePath)) {
    const before = JSON.parse(readFileSync(completePath, "utf8"));
    const others = (text) => !questions.some((name) => text.startsWith(`${name},`));
    const here = new Set(results.peers.map((peer) => peer.key));
    merged.rows = [...before.rows.filter((row) => !questions.includes(row.question)), ...results.rows];
    merged.checks = [...before.checks.filter(others), ...results.checks];
    merged.failures = [...before.failures.filter(others), ...results.failures];
    merged.peers = [...before.peers.filter((peer) => !here.has(peer.key)), ...results.peers];
    merged.asked = { ...before.asked, ...results.asked };
    merged.redis = results.redis ?? before.redis;
    merged.complete = results.complete && before.complete;
  }
  const path = isComplete(merged) ? completePath : partialPath;
  writeFileSync(path, `${JSON.stringify(merged, null, 1)}\n`);
  return merged;
}

process.exitCode = await main().catch((error) => {
  console.error(error.message);
  return 1;
});
