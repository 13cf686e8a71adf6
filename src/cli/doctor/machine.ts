/**
 * The doctor's look at this machine and its configuration.
 */
import { constants } from "node:fs";
import { access, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { errorText } from "../../message/errors.ts";
import { isLoopbackHost } from "../../server/auth.ts";
import type { Config } from "../../server/config/config.ts";
import { type Finding, finding } from "./finding.ts";

const GIB = 1_073_741_824;

export function checkNode(): Finding {
  const version = process.versions.node;
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  return finding("node", fits ? "ok" : "fail", `${version}${fits ? "" : ": 20.19 or later is needed"}`);
}

export async function checkConfiguration(config: Config): Promise<Finding[]> {
  const found = [finding("config", "ok", config.config_path ?? "environment only, no config file"), tokens(config)];
  const sinks = config.sink_allow.length === 0 ? "public addresses only" : `public addresses and ${config.sink_allow.join(", ")}`;
  found.push(finding("sinks", "ok", sinks));
  const embedded = config.store === "postgres" && config.database_url === null && config.url === null;
  return embedded ? [...found, await dataDirectory(config.data_dir)] : found;
}

function tokens(config: Config): Finding {
  const names = config.tokens.map(({ name }) => name).join(", ");
  if (names !== "") return finding("tokens", "ok", names);
  return finding(
    "tokens",
    "ok",
    `none, and none is needed while bound to ${isLoopbackHost(config.host) ? "loopback" : config.host}`,
  );
}

async function dataDirectory(path: string): Promise<Finding> {
  try {
    const nearest = await existing(path);
    await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(nearest);
    const free = (bavail * bsize) / GIB;
    const detail = `${path}, ${free.toFixed(1)} GiB free`;
    return finding("data dir", free < 1 ? "warn" : "ok", detail);
  } catch (error) {
    return finding("data dir", "fail", `${errorText(error)}: set MAKEGOOD_DATA_DIR to a directory that can be written`);
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
