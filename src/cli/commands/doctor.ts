/**
 * `makegood doctor`: looks at everything a delivery depends on and says of each whether it is well. Exit code 1 when
 * something would lose messages or stop delivery; a warning alone is 0.
 */
import { access, constants, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Command } from "commander";
import { errorText } from "../../message/errors.ts";
import { isLoopbackHost } from "../../server/auth.ts";
import type { Config } from "../../server/config/config.ts";
import { type Examined, examined } from "../../store/shared/examined.ts";
import { checkServer } from "../doctor/server.ts";
import { checkStore } from "../doctor/store.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Io, printJson, say } from "../io.ts";
import type { CommandContext, Run } from "../run.ts";

const GIB = 1_073_741_824;

export function doctorCommand(program: Command, run: Run): void {
  program
    .command("doctor")
    .description("check the machine, the configuration and the store (or the server of MAKEGOOD_URL)")
    .action(() => run(examine, { asksServer: true }));
}

async function examine(context: CommandContext): Promise<ExitCode> {
  const { io, config, json } = context;
  const found = [checkNode(), ...(await checkConfiguration(config))];
  found.push(...(config.url === null ? await checkStore(context) : await checkServer(config.url, config.token)));
  const failed = found.some(({ status }) => status === "fail");
  if (json) printJson(io, JSON.stringify({ status: failed ? "fail" : "ok", checks: found }));
  else show(io, found);
  return failed ? EXIT.failed : EXIT.ok;
}

function show(io: Io, found: readonly Examined[]): void {
  const width = Math.max(...found.map(({ name }) => name.length));
  for (const { status, name, detail } of found) say(io, `${status.padEnd(4)}  ${name.padEnd(width)}  ${detail}`);
  const count = (wanted: Examined["status"]): number => found.filter(({ status }) => status === wanted).length;
  say(io, "", `${count("ok")} ok, ${count("warn")} to look at, ${count("fail")} failed`);
}

function checkNode(): Examined {
  const version = process.versions.node;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  return examined("node", fits, `${version}${fits ? "" : ": 20.19 or later is needed"}`);
}

async function checkConfiguration(config: Config): Promise<Examined[]> {
  const bound = isLoopbackHost(config.host) ? "loopback" : config.host;
  const tokens = config.tokens.map(({ name }) => name).join(", ") || `none, and none is needed while bound to ${bound}`;
  const found = [
    examined("config", true, config.config_path ?? "environment only, no config file"),
    examined("tokens", true, tokens),
    examined("sinks", true, ["public addresses", ...config.sink_allow].join(", ")),
  ];
  const embedded = config.store === "postgres" && config.database_url === null && config.url === null;
  return embedded ? [...found, await checkDirectory(config.data_dir)] : found;
}

async function checkDirectory(path: string): Promise<Examined> {
  try {
    const nearest = await existing(path);
    await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(nearest);
    const free = (bavail * bsize) / GIB;
    return examined("data dir", free >= 1, `${path}, ${free.toFixed(1)} GiB free`, "warn");
  } catch (error) {
    return examined("data dir", false, `${errorText(error)}: set MAKEGOOD_DATA_DIR to a directory that can be written`);
  }
}

/** The folder itself, or the one above it in which it would be made. */
async function existing(path: string): Promise<string> {
  const there = await access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
  return there || dirname(path) === path ? path : existing(dirname(path));
}
