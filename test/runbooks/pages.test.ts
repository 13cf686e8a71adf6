/**
 * Every page of docs/runbooks as a reader finds it: it stands alone, its commands are taken by the program with all their options and values,
 * its shell blocks are shell, and each metric and each alert that it names is one.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ALERTS } from "../../deploy/alerts/all.ts";
import { METRICS, type Metric, metricNames } from "../../src/observe/table.ts";
import { terminal } from "../cli/terminal.ts";
import { shellBlocks } from "../support/shell.ts";
import { commandsOf } from "./page-commands.ts";

const FOLDER = new URL("../../docs/runbooks/", import.meta.url).pathname;
const PAGES = readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
const read = (page: string): string => readFileSync(join(FOLDER, page), "utf8");

/** A setting that no configuration can have: what is parsed as it should be gets as far as this, and no further. */
const NOWHERE = { MAKEGOOD_PORT: "none", MAKEGOOD_LOG_LEVEL: "none" };

/** Null: the program takes it. */
async function refused(words: readonly string[]): Promise<string | null> {
  const { stderr, stdout } = await terminal([...words], { env: NOWHERE });
  if (/the configuration has .*mistake/.test(stderr)) return null;
  return `${words.join(" ")}: ${(stderr || stdout).split("\n")[0]}`;
}

const histograms = Object.entries<Metric>(METRICS).filter(([, { type }]) => type === "histogram");
const KNOWN = new Set([...metricNames(), ...histograms.flatMap(([name]) => [`${name}_bucket`, `${name}_count`, `${name}_sum`])]);

/** Jobs of the engine of recovery are named in the same way. */
const JOBS: readonly string[] = ["recovery_counts", "recovery_ingest"];

const metricsIn = (text: string): string[] =>
  [...new Set(text.match(/\b(?:makegood|recovery|m10)_[a-z0-9_]+/g) ?? [])].filter((name) => !JOBS.includes(name));
const alertsIn = (text: string): string[] => [...new Set(text.match(/\b(?:Makegood|M10|Audit)[A-Z][a-z][A-Za-z]+/g) ?? [])];

/** What a page has that tells symptom, weight, look, act and end. */
function missing(page: string, text: string): string[] {
  const parts: Readonly<Record<string, RegExp>> = {
    title: /^# \S/,
    symptom: page.startsWith("alerts/") ? /```promql\n[^`]+```/ : /^\*\*Known by\.\*\* \S/m,
    weight: /^\*\*How bad\.\*\* \S/m,
    look: /^## Look\n\n\S/m,
    act: /^## Do\n\n\S/m,
    end: /^## Over when\n\n\S/m,
  };
  return Object.keys(parts).filter((name) => !parts[name]?.test(text));
}

describe("pages", () => {
  it("there is one for every alert, and thirteen longer ones beside them", () => {
    const alerts = PAGES.filter((page) => page.startsWith("alerts/"));
    expect(alerts.sort()).toEqual(ALERTS.map(({ name }) => `alerts/${name}.md`).sort());
    expect(PAGES.length - alerts.length).toBe(13);
  });

  it.each(PAGES)("%s stands alone, and names only metrics and alerts that there are", (page) => {
    const text = read(page);
    expect(missing(page, text)).toEqual([]);
    expect(metricsIn(text).filter((name) => !KNOWN.has(name))).toEqual([]);
    const names = ALERTS.map(({ name }) => name);
    expect(
      alertsIn(text).filter((name) => !names.some((one) => one === name || (name.endsWith("Burn") && one.startsWith(name)))),
    ).toEqual([]);
    for (const block of shellBlocks(text)) execFileSync("bash", ["-n"], { input: block });
  });

  it("every command is taken by the program, with its options and their values", { timeout: 120_000 }, async () => {
    const found = PAGES.flatMap((page) => commandsOf(read(page)).map((words) => ({ page, words })));
    expect(found.length).toBeGreaterThan(150);
    const answers = await Promise.all(found.map(async ({ page, words }) => ({ page, refused: await refused(words) })));
    expect(answers.filter((one) => one.refused !== null)).toEqual([]);
  });

  it("what is not so is found", async () => {
    expect(await refused(["messages", "list", "--status", "dead"])).toBeNull();
    for (const wrong of ["messages list --colour red", "messages list --status lost", "message list", "streams list other"])
      expect(await refused(wrong.split(" "))).not.toBeNull();
    expect(
      commandsOf(
        '`makegood approve <id>`\n```sh\nX=$(makegood topics list --all | wc -l) # makegood no\nmakegood messages show "$X" || true\n```',
      ),
    ).toEqual([
      ["approve", "0192d1c4-1111-7000-8000-000000000000"],
      ["topics", "list", "--all"],
      ["messages", "show", "0192d1c4-1111-7000-8000-000000000000"],
    ]);
    expect(missing("x.md", "# A\n\n## Look\n\nhere\n")).toEqual(["symptom", "weight", "act", "end"]);
    expect(metricsIn("`makegood_nothing` and `makegood_store_up`").filter((name) => !KNOWN.has(name))).toEqual([
      "makegood_nothing",
    ]);
  });
});
