// Turns the rows of a run into tables: the targets and whether they are met, the medians, the machine, versions and settings.
// Ratios are taken within a round, then their median [min–max] over the rounds.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { questionNames } from "./lib/options.mjs";
import { payloadBytes } from "./lib/payload.mjs";
import { benchPath } from "./lib/prepare.mjs";
import { formatNumber, formatSpread, median } from "./lib/stats.mjs";
import { acceptMetrics, metrics, redisMetrics, settlementMetrics, settlementStores, targets } from "./targets.mjs";

/** Every question, every peer, five rounds: only that is worth keeping. */
export function isComplete(results) {
  return results.complete && questionNames.every((name) => results.asked[name] !== undefined);
}

export function writeReport(results) {
  const complete = isComplete(results);
  const path = `${benchPath}${complete ? "RESULTS.md" : "RESULTS.partial.md"}`;
  const table = targetTable(results);
  const sections = [
    "# Benchmark results",
    introduction(results),
    "## Ratios, and the numbers to reach",
    table,
    ...problems(results),
    "## Medians [min–max]",
    ...medianTables(results),
    "## Machine at the start of each question",
    calibrationTable(results),
    "## Versions and settings",
    settingsTable(results),
    ...notes(),
  ];
  writeFileSync(path, `${sections.join("\n\n")}\n`);
  console.log(`\n${complete ? "" : `${medianTables(results).join("\n\n")}\n\n`}${table}\n`);
  for (const problem of problems(results)) console.log(problem);
  console.log(`written to ${path}${complete ? "" : " (RESULTS.md is only written by a complete run of five rounds)"}`);
}

function valuesOf(results, peer, metric) {
  const byRound = new Map();
  for (const row of results.rows) if (row.peer === peer && row.metric === metric) byRound.set(row.round, row.value);
  return byRound;
}

function measured(results, { ours: whose = "makegood", metric, kind, against, theirs: other = metric }) {
  const ours = valuesOf(results, whose, metric);
  if (kind === "own") return [...ours.values()];
  const theirs = valuesOf(results, against, other);
  const ratios = [];
  for (const [round, value] of ours) {
    if (!theirs.has(round)) continue;
    ratios.push(kind === "ratio" ? value / theirs.get(round) : theirs.get(round) / value);
  }
  return ratios;
}

function targetTable(results) {
  const nameOf = (key) => results.peers.find((peer) => peer.key === key)?.name ?? key;
  const rows = targets.map((target) => {
    const values = measured(results, target);
    const title = `${titlePrefix(target)}${{ ...metrics, ...acceptMetrics, ...redisMetrics, ...settlementMetrics }[target.metric]}`;
    const question = target.kind === "own" ? title : title.replace(/, (µs|ms|\S+\/s)$/, "");
    const own = target.ours === undefined ? "" : `on ${nameOf(target.ours)}`;
    const their = target.theirs === undefined ? "" : `'s ${metrics[target.theirs]}`;
    const against = { ratio: `× ${nameOf(target.against)}${their}`, inverse: `${nameOf(target.against)} / ours`, own }[
      target.kind
    ];
    return [question, against, wanted(target), formatSpread(values), verdict(target, values), String(values.length)];
  });
  const asked = isComplete(results) ? rows : rows.filter((row) => row.at(-1) !== "0");
  return markdown(["question", "against", "to reach", "measured", "", "n"], asked);
}

const titlePrefix = ({ metric }) =>
  metric in redisMetrics ? "Redis store: " : metric in settlementMetrics ? "settlement: " : "";

function wanted({ kind, atLeast, atMost }) {
  if (atMost !== undefined) return `≤ ${atMost}`;
  if (atLeast === undefined) return "–";
  return kind === "inverse" ? "> 1" : `≥ ${atLeast}`;
}

function verdict({ atLeast, atMost }, values) {
  if (atLeast === undefined && atMost === undefined) return "";
  if (values.length === 0) return "not measured";
  const value = median(values);
  return (atMost === undefined ? value >= atLeast : value <= atMost) ? "met" : "**not met**";
}

function medianTables(results) {
  const tables = [
    ["", ["makegood", "raw", "pgboss", "graphile", "bullmq", "undici"], metrics],
    ["over HTTP", ["serve", "bare-http"], acceptMetrics],
    ["the Redis store", ["makegood-redis", "raw-redis", "bullmq"], redisMetrics],
    ["settlement, one call after the other", settlementStores, settlementMetrics],
  ];
  return tables.flatMap(([head, keys, of]) => medianTable(results, head, keys, of) ?? []);
}

/** Null when none of it was measured. */
function medianTable(results, head, keys, titles) {
  const peers = keys.flatMap((key) => results.peers.filter((peer) => peer.key === key));
  const rows = [];
  for (const [metric, title] of Object.entries(titles)) {
    const cells = peers.map(({ key }) => formatSpread([...valuesOf(results, key, metric).values()]));
    if (cells.some((cell) => cell !== "–")) rows.push([title, ...cells]);
  }
  return rows.length === 0 ? null : markdown([head, ...peers.map(({ name }) => name)], rows);
}

function calibrationTable(results) {
  const of = (question, metric) =>
    results.rows.filter((row) => row.question === question && row.metric === metric).map((row) => row.value);
  const rows = questionNames
    .filter((name) => results.asked[name] !== undefined)
    .map((name) => [name, results.asked[name], formatSpread(of(name, "fdatasync")), formatSpread(of(name, "cpuLoop"))]);
  return markdown(["question", "asked", "fdatasync/s", "CPU loop, ms"], rows);
}

function settingsTable(results) {
  const { postgres, redis } = results;
  const settings = Object.entries(postgres.settings).map(([name, value]) => `${name}=${value}`);
  const rows = [
    ["Makegood", results.product, results.peers.find((peer) => peer.key === "makegood")?.settings ?? "–"],
    ["PostgreSQL", postgres.version, `${postgres.origin}; ${settings.join(", ")}`],
    ...(redis === null ? [] : [["Redis", redis.version, redis.settings]]),
    ...results.peers.filter((peer) => peer.key !== "makegood").map((peer) => [peer.name, peer.version ?? "–", peer.settings]),
    ["Node", results.node, "client and servers on the same machine, over 127.0.0.1"],
  ];
  return markdown(["", "version", "settings"], rows);
}

function introduction(results) {
  return [
    `Written by \`npm run bench\`; the run began ${results.startedAt} and took ${formatNumber(results.minutes)} minutes.`,
    `Machine: ${results.machine}; data on ${results.disk}.`,
    `Payload: ${payloadBytes} bytes of JSON. Half of Makegood's messages carry a key (deduplication is in place), four tenants, history kept;`,
    "no peer deduplicates here, raw SQL, graphile-worker and BullMQ keep no history.",
    "Peers take turns within a round and begin with fresh, vacuumed tables and a checkpoint; ratios are taken within a round.",
    ...(results.quick
      ? ["**Quick sizes**: the counts in the names below are those of a full run; these numbers prove nothing."]
      : []),
    "Read the spread before the median: the machine line below shows how noisy the disk and the cores were.",
  ].join("\n");
}

function problems(results) {
  const lines = [...results.checks, ...results.failures].map((text) => `- ${text}`);
  return lines.length === 0 ? [] : ["## What went wrong in this run", lines.join("\n")];
}

function notes() {
  const path = `${benchPath}NOTES.md`;
  return existsSync(path) ? [readFileSync(path, "utf8").trim()] : [];
}

function markdown(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const widths = head.map((cell, column) => Math.max(3, cell.length, ...rows.map((row) => row[column].length)));
  const padded = (cells) => line(cells.map((cell, column) => cell.padEnd(widths[column])));
  return [padded(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(padded)].join("\n");
}
