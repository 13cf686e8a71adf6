/** Debian's Prometheus: promtool, and in the run of the alerts the server and Alertmanager. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { findTool } from "./find-tool.mjs";

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
