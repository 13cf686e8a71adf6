/** Debian's Prometheus: promtool; and the server itself with Alertmanager, watching a process by the shipped rules. */
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { findTool } from "./find-tool.mjs";
import { freePort } from "./free-port.ts";
import { type Process, startShell, until, workspace } from "./processes.ts";
import { startReceiver } from "./receiver.ts";

const NEED = "the tests of the alerts and dashboards need it";
const find = (file: string, name: string) => findTool({ files: [file], packages: [name], need: NEED });

/** What it printed; where it fails, that as an error. */
export async function promtool(...args: string[]): Promise<string> {
  const program = await find("promtool", "prometheus");
  return promisify(execFile)(program, args).then(
    ({ stdout }) => stdout,
    (error: { stdout: string; stderr: string }) => Promise.reject(new Error(`${error.stdout}\n${error.stderr}`.slice(0, 4_000))),
  );
}

export interface Watched extends AsyncDisposable {
  /** Notices that came to the receiver, oldest first. */
  readonly notices: readonly Notice[];
  /** The first notice of an alert of that status after the first `after`; waits for it. */
  notice(alertname: string, status: Notice["status"], after?: number): Promise<Notice>;
  /** How many series an expression has now; rejects what Prometheus cannot evaluate. */
  ask(expr: string): Promise<number>;
}

export interface Notice {
  readonly status: "firing" | "resolved";
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const SECONDS = { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" };
/** Of a copy of the shipped file, so that minutes are not waited for. */
const hurried = (rules: string): string => rules.replace(/^( +for:) .*$/gm, "$1 1s");

const running = async (program: string, args: readonly string[], base: string): Promise<Process> => {
  const one = await startShell('exec "$0" "$@"', [program, ...args]);
  await until(`${program} is ready (${one.stderr().slice(-500)})`, async () => {
    if (one.over) throw new Error(`${program} ended: ${one.stderr().slice(-2_000)}`);
    return fetch(`${base}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return one;
};

/** Prometheus that scrapes a process by the shipped rules, and Alertmanager that posts what they say to a receiver of its own. */
export async function watch(
  target: string,
  rulePaths: readonly string[],
  headers: { readonly token?: string } = {},
): Promise<Watched> {
  const folder = await workspace();
  const receiver = await startReceiver();
  const [own, manager] = [await freePort(), await freePort()];
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  // JSON is YAML.
  const routed = { receiver: "hook", group_by: ["alertname"], group_wait: "100ms", group_interval: "1s", repeat_interval: "1h" };
  const managed = { route: routed, receivers: [{ name: "hook", webhook_configs: [{ url: receiver.url, send_resolved: true }] }] };
  const managerFlags = [`--web.listen-address=127.0.0.1:${manager}`, "--cluster.listen-address=", `--storage.path=${folder}/am`];
  const alertmanager = await running(
    await find("prometheus-alertmanager", "prometheus-alertmanager"),
    [`--config.file=${await write("alertmanager.yaml", JSON.stringify(managed))}`, ...managerFlags],
    `http://127.0.0.1:${manager}`,
  );
  const rule_files = await Promise.all(
    rulePaths.map(async (path) => write(basename(path), hurried(await readFile(path, "utf8")))),
  );
  const static_configs = [{ targets: [new URL(target).host] }];
  const config = {
    global: SECONDS,
    rule_files,
    scrape_configs: [
      { job_name: "makegood", static_configs, ...(headers.token ? { authorization: { credentials: headers.token } } : {}) },
    ],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${manager}`] }] }] },
  };
  const base = `http://127.0.0.1:${own}`;
  const flags = [`--web.listen-address=127.0.0.1:${own}`, `--storage.tsdb.path=${folder}/tsdb`];
  const prometheus = await running(
    await find("prometheus", "prometheus"),
    [`--config.file=${await write("prometheus.yaml", JSON.stringify(config))}`, ...flags],
    base,
  );
  const notices = (): Notice[] => receiver.arrivals.flatMap(({ body }) => (JSON.parse(body) as { alerts: Notice[] }).alerts);
  return {
    get notices() {
      return notices();
    },
    async notice(alertname, status, after = 0) {
      const fits = () =>
        notices()
          .slice(after)
          .find((one) => one.labels.alertname === alertname && one.status === status);
      await until(`${alertname} is ${status}`, () => fits() !== undefined, 110_000);
      return fits() as Notice;
    },
    async ask(expr) {
      const answer = await fetch(`${base}/api/v1/query?query=${encodeURIComponent(expr)}`);
      const said = (await answer.json()) as { status: string; error?: string; data?: { result: unknown[] } };
      if (said.status !== "success") throw new Error(`${expr}: ${said.error}`);
      return said.data?.result.length ?? 0;
    },
    async [Symbol.asyncDispose]() {
      await prometheus.end("SIGKILL");
      await alertmanager.end("SIGKILL");
      await receiver[Symbol.asyncDispose]();
    },
  };
}
