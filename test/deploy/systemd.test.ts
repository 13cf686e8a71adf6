/**
 * The systemd units as `systemd-analyze` reads them, and against the product: what they start is a command that there is, and a stop takes
 * as long as it may.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS } from "../../src/message/limits.ts";
import { terminal } from "../cli/terminal.ts";
import { EXPECTED } from "../maintenance/world.ts";
import { findTool } from "../support/find-tool.mjs";
import { DEPLOY } from "./kustomized.ts";

const run = promisify(execFile);
const INSTALLED = "/opt/makegood/node_modules/.bin/makegood";
const units = new Map<string, string>();
let analyze = "";
let folder = "";
let jobs: string[] = [];

beforeAll(async () => {
  analyze = await findTool({
    files: ["systemd-analyze"],
    packages: ["systemd"],
    need: "the tests of deploy/ need it",
    remedy: "a Linux with systemd",
  });
  folder = await mkdtemp(join(tmpdir(), "makegood-units-"));
  for (const name of await readdir(join(DEPLOY, "systemd"))) {
    const text = await readFile(join(DEPLOY, "systemd", name), "utf8");
    units.set(name, text);
    // It is not installed here; that its place is there and can be executed is all that the check asks.
    await writeFile(join(folder, name), text.replaceAll(INSTALLED, "/bin/sh"));
  }
  // A timer of one job starts the template: systemd finds it by the name without the job.
  jobs = [...units.keys()].flatMap((name) => /^makegood-job@(.+)\.timer$/.exec(name)?.[1] ?? []);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** `makegood-job@.service` is a template: one of its jobs stands for all. */
const paths = (ending: string) =>
  [...units.keys()].filter((name) => name.endsWith(ending)).map((name) => join(folder, name.replace("@.", "@reclaim-expired.")));
const valuesOf = (name: string, key: string) =>
  [...(units.get(name) ?? "").matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value]) => value ?? "");
const services = () => [...units.keys()].filter((name) => name.endsWith(".service"));

const SUNDAY = "Sun *-*-* 03:00:00";
const schedule = (job: string) =>
  ["OnUnitActiveSec", "OnCalendar"].flatMap((key) => valuesOf(`makegood-job@${job}.timer`, key)).join();

describe("the units", () => {
  it("REC-59: are all that systemd would load, without a complaint", async () => {
    const { stdout, stderr } = await run(analyze, ["verify", "--man=no", ...paths(".service"), ...paths(".timer")]);
    expect(stdout + stderr).toBe("");
    await writeFile(join(folder, "broken.service"), "[Service]\nExecStart=/bin/sh\nTimeoutStopSek=5\nType=sometimes\n");
    const broken = await run(analyze, ["verify", "--man=no", join(folder, "broken.service")]).catch((error) => error);
    expect(broken.stderr).toMatch(/TimeoutStopSek/);
  }, 60_000);

  it("leave a process little to do harm with", async () => {
    for (const path of paths(".service")) {
      const { stdout } = await run(analyze, ["security", "--offline=true", "--threshold=20", path]);
      expect(stdout).toMatch(/Overall exposure level for .*: 1\.\d/);
    }
  }, 60_000);

  it("start commands that there are", async () => {
    for (const name of services()) {
      const [start = ""] = valuesOf(name, "ExecStart");
      expect(start.startsWith(`${INSTALLED} `), name).toBe(true);
      const [command = ""] = start.slice(INSTALLED.length + 1).split(" ");
      const told = await terminal([command, "--help"], { env: {} });
      expect([told.code, told.stdout], name).toEqual([0, expect.stringContaining(`Usage: makegood ${command} `)]);
    }
  });

  it("REC-59, EV-42: have the seeds' schedules, one timer for each job that is run once; what is skipped is no failure", async () => {
    // m10-outbox-processor, m10-dl-reconcile, m10-matview-refresh, m10-retention-cleanup, m10-reclaim-gc.
    expect(Object.fromEntries(jobs.map((name) => [name, schedule(name)]))).toEqual({
      "reclaim-expired": "30s",
      ...{ reconcile: "10min", "reconcile-streams": "10min", recovery_counts: "5min" },
      ...{ "prune-settled": SUNDAY, "retire-provenance": SUNDAY, "clean-locks": SUNDAY },
      "clean-consumers": "hourly",
    });
    const { stdout } = await run(analyze, ["calendar", SUNDAY, "hourly"]);
    expect(stdout.match(/Normalized form/g)).toHaveLength(2);
    // Every one of them is a job of the scheduler.
    const names = [...Object.keys(EXPECTED), "reconcile", "reconcile-streams", "clean-consumers"];
    for (const name of jobs) expect(names).toContain(name);
    const [start = ""] = valuesOf("makegood-job@.service", "ExecStart");
    expect(start).toBe(`${INSTALLED} jobs run %i --json`);
  });

  it("wait for a stop as long as it takes: the drain, then the close", () => {
    for (const name of services()) {
      const [seconds = ""] = valuesOf(name, "TimeoutStopSec");
      expect(Number(seconds.replace("s", "")), name).toBeGreaterThanOrEqual(DEFAULTS.drainMs / 1_000 + 15);
    }
  });
});
