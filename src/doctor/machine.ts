/** The machine and the configuration, before any store is asked: Node, who can reach the server, where secrets lie, what room disks have. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { isLoopbackHost } from "../server/auth.ts";
import type { Config } from "../server/config/config.ts";
import { SETTINGS, type Setting } from "../server/config/settings.ts";
import { retentionProblems } from "../server/serve.ts";
import { examineFolder } from "../store/shared/examine-folder.ts";
import { type Examined, examined } from "../store/shared/examined.ts";
import { endingSoon } from "./ending-soon.ts";

type Env = Readonly<Record<string, string | undefined>>;

export async function examineMachine(config: Config, env: Env, cwd: string): Promise<Examined[]> {
  const embedded = config.store === "postgres" && config.database_url === null && config.url === null;
  const folders: [name: string, path: string, variable: string][] = embedded
    ? [["data dir", config.data_dir, "MAKEGOOD_DATA_DIR"]]
    : [];
  if (config.journal_dir !== null) folders.push(["journal dir", resolve(cwd, config.journal_dir), "MAKEGOOD_JOURNAL_DIR"]);
  const [, archive] = /^file:(.+)$/.exec(config.archive) ?? [];
  if (archive !== undefined) folders.push(["archive dir", resolve(cwd, archive), "MAKEGOOD_ARCHIVE"]);
  return [
    examineNode(process.versions.node),
    examined("config", true, config.config_path ?? "environment only, no config file"),
    ...bound(config),
    examined("sinks", true, ["public addresses", ...config.sink_allow].join(", ")),
    await secrets(config, env, cwd),
    retention(config),
    ...(await Promise.all(folders.map((one) => examineFolder(...one)))),
  ];
}

export function examineNode(version: string): Examined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  return examined("node", fits, `${version}${fits ? "" : ": 20.19 or later is needed"}`);
}

/** As a start would refuse it (DX-4). */
function retention(config: Config): Examined {
  const faults = retentionProblems(config);
  const window = config.replay_window_days;
  const fits = window === null ? "no replay window is said" : `what comes again within ${window} days is known again`;
  return examined("retention", faults.length === 0, faults.join("; ") || fits);
}

/** Without tokens nothing but loopback starts at all. The server speaks plain HTTP: beyond this machine TLS has to end before it. */
function bound({ host, hosts, tokens }: Config): Examined[] {
  const local = isLoopbackHost(host);
  const names = tokens.map(({ name }) => name).join(", ");
  const ending = tokens.flatMap(({ name, expiresMs }) => endingSoon(`the token ${name}`, expiresMs) ?? []).join("; ");
  const remedy = "add a new one under a second name: docs/runbooks/rotate-keys-and-tokens.md";
  const proxied = `${host}, asked as ${hosts.join(", ")}`;
  const open = `${host}: others can reach it, and what they send is not encrypted; put a proxy that ends TLS in front and its name into MAKEGOOD_HOSTS`;
  return [
    examined("bind", local || hosts.length > 0, local ? "loopback" : hosts.length > 0 ? proxied : open, "warn"),
    ending === ""
      ? examined("tokens", true, names || "none, and none is needed while bound to loopback")
      : examined("tokens", false, `${ending}; ${remedy}`, "warn"),
  ];
}

const SECRETS = Object.values(SETTINGS as Record<string, Setting>).filter(({ secret }) => secret);

/** A file of a secret is read by its owner and group; what stands in the environment is seen by every child and crash report. */
async function secrets(config: Config, env: Env, cwd: string): Promise<Examined> {
  const files = SECRETS.flatMap(({ env: name }) =>
    env[`${name}_FILE`] ? [[`${name}_FILE`, env[`${name}_FILE`] as string]] : [],
  );
  const open = await Promise.all(
    files.map(async ([name, path]) => {
      const mode = await stat(resolve(cwd, path as string)).then(
        (found) => found.mode,
        () => 0,
      );
      if ((mode & 0o002) !== 0) return { harm: true, words: `${name} can be changed by every user: chmod o-rw ${path}` };
      return (mode & 0o004) !== 0 ? { harm: false, words: `${name} can be read by every user: chmod o-r ${path}` } : null;
    }),
  );
  const wrong = open.filter((one) => one !== null);
  const bare = isLoopbackHost(config.host)
    ? []
    : SECRETS.filter(({ env: name }) => env[name]).map(({ env: name }) => `${name} is in the environment: use ${name}_FILE`);
  const words = [...wrong.map((one) => one.words), ...bare].join("; ");
  return examined(
    "secrets",
    words === "",
    words || `${files.length} from files, each closed to other users`,
    wrong.some(({ harm }) => harm) ? "fail" : "warn",
  );
}
