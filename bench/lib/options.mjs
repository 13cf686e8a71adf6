// The command line of the benchmark.
import { parseArgs } from "node:util";
import { full, quick } from "../sizes.mjs";

export const questionNames = [
  "enqueue",
  "tx",
  "drain",
  "latency",
  "depth",
  "longtx",
  "history",
  "http",
  "accept",
  "redis",
  "settlement",
];
export const peerNames = [
  ...["makegood", "raw", "pgboss", "graphile", "bullmq", "undici"],
  ...["makegood-redis", "raw-redis"],
  ...["redis-everysec", "redis-always", "postgres-store"],
  ...["serve", "bare-http"],
];

const usage = `node bench/run.mjs [options]
  --quick          one round with small sizes: shows that all works, proves nothing
  --only a,b       some questions: ${questionNames.join(", ")}
  --peers a,b      some peers: ${peerNames.join(", ")}
  --rounds n       default 5
  --merge          keep the other questions' rows of the last run
  --report         no run: write the tables of the last run again
  --no-build       use dist/ as it is
Environment: BENCH_DATABASE_URL, a server to use instead of an own one (the run makes and drops a database of its own there);
BENCH_DIST, another build of the product to measure; BENCH_EVENTS=1 prints the product's events (and slows it down).`;

function list(text, known, option) {
  const names = text.split(",").filter(Boolean);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`--${option}: unknown ${unknown.join(", ")}; there are ${known.join(", ")}`);
  return names;
}

export function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      peers: { type: "string" },
      rounds: { type: "string" },
      merge: { type: "boolean", default: false },
      report: { type: "boolean", default: false },
      "no-build": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const sizes = values.quick ? quick : full;
  const rounds = values.rounds === undefined ? sizes.rounds : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds: a whole number from 1 on");
  return {
    sizes,
    rounds,
    quick: values.quick,
    merge: values.merge,
    reportOnly: values.report,
    build: !values["no-build"],
    questions: values.only === undefined ? questionNames : list(values.only, questionNames, "only"),
    /** Null: each question's own. */
    peers: values.peers === undefined ? null : list(values.peers, peerNames, "peers"),
  };
}
