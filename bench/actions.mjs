// How good the first suggestion is: reads labelled failures (JSON lines: http_status, error_code, text, stack, cause, best, acceptable, and best_2,
// cause_2 of a second rater) and asks the shipped rules about each, without a history. Prints the shares of acceptable, best and none, and each cause.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { evaluateRules } from "../dist/recovery/rules/evaluate.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean" }, misses: { type: "boolean" }, "no-status": { type: "boolean" } },
});
const [file] = positionals;
if (file === undefined) {
  console.error("usage: npm run bench:actions -- FILE.jsonl [--json] [--misses] [--no-status]");
  process.exit(2);
}

function asked({ http_status: status, error_code: code, text, stack }) {
  const errorCode = code ?? (status === null ? "" : `http_${status}`);
  const { recommended, cause, confidence } = evaluateRules(errorCode, text, {
    ...(stack ? { stackTrace: stack } : {}),
    httpStatus: values["no-status"] ? undefined : (status ?? undefined),
  });
  return { action: recommended?.action ?? null, confidence, cause };
}

const lines = readFileSync(file, "utf8")
  .split("\n")
  .filter((line) => line.trim() !== "");
const results = lines.map((line) => {
  const given = JSON.parse(line);
  const { action, confidence, cause } = asked(given);
  const bests = [given.best, given.best_2 ?? given.best, ...(given.best_more ?? [])];
  const rightCause = [given.cause, given.cause_2].includes(cause.cause);
  return {
    given,
    action,
    confidence,
    cause,
    rightCause,
    best: bests.includes(action),
    acceptable: given.acceptable.includes(action),
  };
});

const share = (list, of) => (list.length === 0 ? 0 : Math.round((1000 * list.filter(of).length) / list.length) / 1000);
const figures = (list) => ({
  count: list.length,
  acceptable: share(list, (each) => each.acceptable),
  best: share(list, (each) => each.best),
  none: share(list, (each) => each.action === null),
  cause: share(list, (each) => each.rightCause),
});
const causes = [...new Set(results.map(({ given }) => given.cause))].sort();
const report = {
  ...figures(results),
  causes: Object.fromEntries(causes.map((cause) => [cause, figures(results.filter(({ given }) => given.cause === cause))])),
};

const row = (name, { count, acceptable, best, none, cause }) =>
  `${name.padEnd(24)}${String(count).padStart(6)}${[acceptable, best, none, cause].map((one) => one.toFixed(3).padStart(12)).join("")}`;

if (values.json) console.log(JSON.stringify(report, null, 2));
else {
  console.log(
    `${"".padEnd(24)}${["count"].map((one) => one.padStart(6))}${["acceptable", "best", "none", "cause"].map((one) => one.padStart(12)).join("")}`,
  );
  for (const [name, each] of Object.entries(report.causes)) console.log(row(name, each));
  console.log(row("all", report));
}
if (values.misses) {
  for (const { given, action, cause, rightCause, best, acceptable } of results) {
    if (best && acceptable && rightCause) continue;
    const word = acceptable ? (best ? "cause" : "second") : "MISSED";
    console.log(
      `\n${word} ${given.id}: ${given.cause} → ${given.best}; said ${cause.cause}${cause.detail ? `.${cause.detail}` : ""} → ${action} (${cause.signature})`,
    );
    console.log(`  ${given.error_code}: ${given.text.slice(0, 240).replaceAll("\n", " ")}`);
    console.log(`  ${cause.evidence}`);
  }
}
