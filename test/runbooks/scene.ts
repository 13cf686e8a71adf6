/**
 * What a machine has on which a runbook is followed: Makegood as a service that systemctl starts and stops at one address, with its settings in
 * a file, and what Prometheus would read of it.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { createLog } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { startProbes } from "../../src/server/index.ts";
import { type RunningServer, startServer } from "../../src/server/serve.ts";
import { configOf } from "../server/support.ts";
import { freePort } from "../support/free-port.ts";
import type { Program } from "../support/shell.ts";

export const TOPIC = "shop/charge";
export const LOOPBACK = { MAKEGOOD_SINK_ALLOW: "127.0.0.0/8", MAKEGOOD_POLL_MS: "50" };
export const RETRY = { attempts_max: 1, base_ms: 10, max_ms: 10 };

/** Counts are kept for seconds by who is asked again; a port that was just opened has none yet. Counters are those of the server itself. */
export async function scrapeOf({ mg, url }: Pick<RunningServer, "mg" | "url">): Promise<string> {
  await using probes = await startProbes(mg, { port: 0 });
  const read = async (of: string) => (await (await fetch(`${of}/metrics`)).text()).split("\n");
  let fresh = await read(probes.url);
  // On a busy machine counting takes longer than a scrape waits.
  for (let n = 0; n < 10 && !fresh.some((line) => line.startsWith("makegood_levels_age_seconds ")); n++)
    fresh = await read(probes.url);
  const isCounter = (line: string) => /^\w+_total[{ ]/.test(line);
  return [...fresh.filter((line) => !isCounter(line)), ...(await read(url)).filter(isCounter)].join("\n");
}

/** Value of the first series of that name and those labels; null: there is none. */
export function shownAs(scrape: string, series: RegExp): number | null {
  const line = scrape.split("\n").find((one) => series.test(one));
  return line === undefined ? null : Number(line.slice(line.lastIndexOf(" ") + 1));
}

export const openDeadLetters = (scrape: string, topic = TOPIC) =>
  shownAs(scrape, new RegExp(`^makegood_dead_letters\\{topic="${topic}"\\}`)) ?? 0;

type Service = Readonly<Record<string, () => Promise<unknown>>>;

/** `systemctl VERB NAME`: what those services do then. */
export const systemctl =
  (services: Readonly<Record<string, Service>>): Program =>
  async ({ args: [verb = "", name = ""] }) => {
    const act = services[name]?.[verb];
    if (!act) return { code: 5, stdout: "", stderr: `no unit ${name} that could ${verb}\n` };
    await act();
    return { code: 0, stdout: "", stderr: "" };
  };

export interface Daemon extends AsyncDisposable {
  readonly url: string;
  /** Its settings, a line each: read at each start. */
  readonly file: string;
  readonly service: { start(): Promise<void>; stop(): Promise<void>; restart(): Promise<void> };
  readonly server: () => RunningServer;
  readonly lines: string[];
  send(method: string, path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  scrape(): Promise<string>;
}

/** `makegood serve` as a service; in this process, and otherwise from its settings alone. */
export async function startDaemon(cwd: string, env: Readonly<Record<string, string>>): Promise<Daemon> {
  const daemon = await makeDaemon(cwd, env);
  await daemon.service.start();
  return daemon;
}

/** The same, not started yet. */
export async function makeDaemon(cwd: string, env: Readonly<Record<string, string>>): Promise<Daemon> {
  const port = String(await freePort());
  const file = join(cwd, "makegood.env");
  const settings = { ...LOOPBACK, MAKEGOOD_PORT: port, ...env };
  await writeFile(
    file,
    `${Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join("")}`,
  );
  const lines: string[] = [];
  const log = createLog({ clock: systemClock, format: "json", level: "info", write: (line) => void lines.push(line) });
  let running: RunningServer | null = null;
  const start = async (): Promise<void> => {
    const given = (await readFile(file, "utf8")).split("\n").filter((line) => line.includes("="));
    const now = Object.fromEntries(given.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
    running ??= await startServer({ config: await configOf(now, cwd), log });
  };
  const stop = async (): Promise<void> => {
    const ending = running;
    running = null;
    await ending?.close({ drainMs: 2_000 });
  };
  const server = (): RunningServer => {
    if (running === null) throw new Error("makegood is not running");
    return running;
  };
  const url = `http://127.0.0.1:${port}`;
  return {
    ...{ url, file, server, lines },
    service: { start, stop, restart: () => stop().then(start) },
    send: (method, path, body, headers = {}) =>
      fetch(url + path, { method, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) }),
    scrape: () => scrapeOf(server()),
    [Symbol.asyncDispose]: stop,
  };
}

type Sends = Pick<Daemon, "send">;

export async function send(to: Sends, payload: unknown, more: object = {}): Promise<string> {
  const response = await to.send("POST", "/api/v1/messages", { topic: TOPIC, payload, ...more });
  // 200: it was accepted before, under the same key.
  expect([200, 201]).toContain(response.status);
  return ((await response.json()) as { id: string }).id;
}

export async function putTopic(to: Sends, definition: object, topic = TOPIC): Promise<void> {
  expect((await to.send("PUT", `/api/v1/topics/${topic}`, definition)).status).toBeLessThan(300);
}
