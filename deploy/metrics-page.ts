/** The reference of all metrics, printed from the table. */
import { CHAPTERS, type Metric } from "../src/observe/table.ts";

const FROM = {
  process: "counted in this process since it started: sum over processes",
  here: "how things stand in this process: each has its own",
  store: "the whole system, from the store's counts: every process says the same, take the max",
  source: "the whole system, from a source of its own (`makegood_source_up`): take the max",
} as const;

const INTRO = `# Metrics

Printed from \`src/observe/table.ts\` by \`npm run docs:metrics\`; a test compares this page with the table, and another one a scrape.

\`makegood serve\` answers \`/metrics\` on its own port. \`makegood work --probe-port 4601\` (\`MAKEGOOD_PROBE_PORT\`) and \`startProbes(mg, { port })\` of
\`makegood/server\` answer \`/metrics\`, \`/livez\` and \`/readyz\` on one of their own. Where tokens are set, a scrape needs one.

**What is not known is absent, never 0.** A gauge whose source did not answer for 15 seconds, or was last read more than 90 seconds ago, has no line
in the scrape; alerts say so with \`absent()\`. A counter starts at 0. A topic beyond the first 1,000, and any other label value beyond the first 100, counts as \`other\`.

| from | meaning |
| --- | --- |
${Object.entries(FROM)
  .map(([from, meaning]) => `| ${from} | ${meaning} |`)
  .join("\n")}

Beside these there are the process and Node.js metrics of prom-client (\`process_*\`, \`nodejs_*\`).
`;

function row([name, { type, help, labels, from, alias }]: [string, Metric]): string {
  const also = alias === undefined ? "" : ` Also as \`${alias}\`.`;
  return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${from} | ${help}${also} |`;
}

export function metricsPage(): string {
  const chapters = Object.entries(CHAPTERS).map(
    ([title, metrics]) =>
      `## ${title}\n\n| name | type | labels | from | meaning |\n| --- | --- | --- | --- | --- |\n${Object.entries<Metric>(metrics).map(row).join("\n")}\n`,
  );
  return [INTRO, ...chapters].join("\n");
}
