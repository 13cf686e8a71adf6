// How well failures are grouped: Grouping Accuracy on labelled logs. Reads *_2k.csv (columns Content and EventId) from the folder that is
// given, one scope per file, the default configuration, one pass; prints the accuracy per file, the mean, and lines per second on one core.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Fingerprints } from "../dist/recovery/fingerprint/fingerprint.js";

/** RFC 4180: quoted fields, doubled quotes, line breaks inside quotes. */
function parseCsv(text) {
  const rows = [];
  let row = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') {
        field += '"';
        i++;
      } else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === "," || c === "\n") {
      row.push(c === "\n" && field.endsWith("\r") ? field.slice(0, -1) : field);
      field = "";
      if (c === "\n") {
        rows.push(row);
        row = [];
      }
    } else field += c;
  }
  if (field !== "" || row.length > 0) rows.push([...row, field]);
  return rows;
}

function readLog(path) {
  const [head = [], ...rows] = parseCsv(readFileSync(path, "utf8").replace(/^\uFEFF/, ""));
  const content = head.indexOf("Content");
  const event = head.indexOf("EventId");
  if (content < 0 || event < 0) throw new Error(`${path}: the columns Content and EventId are needed`);
  return rows.filter((row) => row.length > Math.max(content, event)).map((row) => ({ text: row[content], label: row[event] }));
}

function keysOf(fingerprints, name, lines) {
  return lines.map(({ text }) => fingerprints.of({ topic: name, sink: "log", errorCode: "LINE", errorMessage: text }).key);
}

/** One pass; keys are resolved when all lines were seen, as a reader of groups would. */
function group(name, lines) {
  const fingerprints = new Fingerprints();
  const keys = keysOf(fingerprints, name, lines);
  const now = new Map([...new Set(keys)].map((key) => [key, fingerprints.resolve(name, "LINE", key)]));
  return keys.map((key) => now.get(key));
}

function setsOf(values) {
  const sets = new Map();
  values.forEach((value, i) => {
    const set = sets.get(value) ?? [];
    set.push(i);
    sets.set(value, set);
  });
  return sets;
}

/** The share of lines whose group is exactly the set of lines with their label. */
function accuracy(lines, groups) {
  const truth = setsOf(lines.map(({ label }) => label));
  const found = setsOf(groups);
  let right = 0;
  for (const members of truth.values()) {
    const own = found.get(groups[members[0]]);
    if (own.length === members.length && members.every((line, i) => line === own[i])) right += members.length;
  }
  return { share: right / lines.length, labels: truth.size, groups: found.size };
}

/** Lines per second of processor time: passes for at least `forMs`, after a first one. */
function linesPerSecond(pass, lines, forMs) {
  pass();
  const start = process.cpuUsage();
  let passes = 0;
  let spent = 0;
  while (spent < forMs * 1_000) {
    pass();
    passes++;
    const { user, system } = process.cpuUsage(start);
    spent = user + system;
  }
  return Math.round((passes * lines.length) / (spent / 1_000_000));
}

/** Equal numbers of lines per file: the harmonic mean is the rate over all of them. */
function overall(rates) {
  return Math.round(rates.length / rates.reduce((total, each) => total + 1 / each, 0));
}

function print(name, share, ...numbers) {
  console.log([name.padEnd(16), share.padStart(7), ...numbers.map((number) => String(number).padStart(12))].join(" "));
}

const folder = process.argv[2];
if (folder === undefined) {
  console.error("usage: npm run bench:grouping -- <folder with *_2k.csv>");
  process.exit(2);
}
const files = readdirSync(folder)
  .filter((name) => name.endsWith("_2k.csv"))
  .sort();
if (files.length === 0) {
  console.error(`${folder} has no *_2k.csv`);
  process.exit(2);
}
print("file", "GA", "groups", "labels", "learning/s", "steady/s");
const logs = files.map((file) => ({ name: file.replace(/_2k\.csv$/, ""), lines: readLog(join(folder, file)) }));
// The code is compiled by the time it is measured.
for (let round = 0; round < 5; round++) for (const { name, lines } of logs) group(name, lines);
let sum = 0;
const rates = { learning: [], steady: [] };
for (const { name, lines } of logs) {
  const { share, labels, groups } = accuracy(lines, group(name, lines));
  // Learning: every pass begins with nothing. Steady: the templates are known, as in a process that has run for a while.
  const learning = linesPerSecond(() => group(name, lines), lines, 400);
  const known = new Fingerprints();
  const steady = linesPerSecond(() => keysOf(known, name, lines), lines, 400);
  sum += share;
  rates.learning.push(learning);
  rates.steady.push(steady);
  print(name, share.toFixed(4), groups, labels, learning, steady);
}
print("mean", (sum / files.length).toFixed(4), "", "", overall(rates.learning), overall(rates.steady));
