/**
 * Follows a runbook as a person on call would: first the fault is there and its alert fires, then the commands of the page are run as they
 * stand, one section after the other, and in the end the alert is silent.
 */
import { readFile } from "node:fs/promises";
import { expect } from "vitest";
import { openShell, type Program, shellBlocks } from "../support/shell.ts";
import { checkFiring } from "./alert-history.ts";

export interface Scene {
  readonly cwd: string;
  /** The page's address, and what it calls the label of the alert. */
  readonly env: Readonly<Record<string, string>>;
  /** Programs of the machine that the page names, such as systemctl. */
  readonly programs?: Readonly<Record<string, Program>>;
  /** What Prometheus would read now. */
  scrape(): Promise<string>;
  inject(): Promise<void>;
  /** Resolves when the alert's condition is there, or gone, in what is scraped. */
  until(scrape: string, there: boolean): boolean;
}

/** What the commands of each section printed. */
export type Printed = Readonly<Record<string, string>>;

const PAGES = new URL("../../docs/runbooks/", import.meta.url);

/** Headline → text below it. */
function sections(page: string): Map<string, string> {
  const parts = page.split(/^## /m).slice(1);
  return new Map(parts.map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1)]));
}

async function scraped(scene: Scene, there: boolean): Promise<string> {
  let last = "";
  await expect
    .poll(
      async () => {
        last = await scene.scrape();
        return scene.until(last, there);
      },
      { timeout: 30_000, interval: 100 },
    )
    .toBe(true);
  return last;
}

/** Runs the commands of the page as they stand. */
export async function followed(page: string, scene: Pick<Scene, "cwd" | "env" | "programs">): Promise<Printed> {
  const text = await readFile(new URL(`${page}.md`, PAGES), "utf8");
  await using shell = await openShell(scene.cwd, scene.env, scene.programs, null);
  // One shell for all of it: what a section has put into a variable, the next one uses.
  const all = [...sections(text)].map(([name, part]) => `echo "------ ${name}"\n${shellBlocks(part).join("\n")}`);
  const parts = (await shell.run(all.join("\n"))).split("------ ").slice(1);
  return Object.fromEntries(parts.map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1)]));
}

/** `alert` null: none is about it alone, and what it is known by is looked at instead. */
export async function follow(page: string, alert: string | null, scene: Scene): Promise<Printed> {
  const before = await scraped(scene, false);
  await scene.inject();
  const during = await scraped(scene, true);
  const printed = await followed(page, scene);
  const after = await scraped(scene, false);
  if (alert !== null) await checkFiring(alert, [before, during, after], [false, true, false]);
  return printed;
}
