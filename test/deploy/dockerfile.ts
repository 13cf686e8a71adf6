/**
 * A Dockerfile played without Docker: its own instructions, one after the other, each stage in a root of its own that has this machine's
 * programs where the base image would have its. It knows the instructions that ours uses, and refuses every other one.
 */
import { cp, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Process, startShell } from "../support/processes.ts";

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** As Docker reads them: comments and empty lines away, continued lines joined. */
export function instructionsOf(text: string): Instruction[] {
  const lines = text.split("\n").filter((line) => !/^\s*(#|$)/.test(line));
  const joined = lines.join("\n").replaceAll(/\\\n\s*/g, "");
  return joined.split("\n").map((line) => {
    const [, name = "", rest = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return { name, rest };
  });
}

/** What .dockerignore lets through: ours closes all and opens single names. */
export async function allowedBy(context: string): Promise<readonly string[]> {
  const [first, ...open] = (await readFile(join(context, ".dockerignore"), "utf8"))
    .split("\n")
    .filter((line) => !/^(#|$)/.test(line));
  if (first !== "*" || open.some((line) => !/^![\w.-]+$/.test(line)))
    throw new Error(".dockerignore: only * and !name are known here");
  return open.map((line) => line.slice(1));
}

export interface Image {
  readonly root: string;
  readonly user: string;
  readonly entry: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
}

/** `instead`: RUN steps that are not run, and what is mounted, to be read only, at the place of what they would make. */
export async function play(
  context: string,
  folder: string,
  instead: (command: string) => boolean,
  modules: string | null,
): Promise<Image> {
  const allowed = await allowedBy(context);
  const stages = new Map<string, string>();
  let [root, workdir, user] = ["", "/", ""];
  const env = new Map<string, string>();
  let entry: string[] = [];
  let command: string[] = [];
  let healthcheck: string[] = [];
  for (const { name, rest } of instructionsOf(await readFile(join(context, "deploy/Dockerfile"), "utf8"))) {
    switch (name) {
      case "FROM": {
        const [, stage = "final"] = /\bAS (\w+)$/.exec(rest) ?? [];
        [root, workdir] = [join(folder, stage), "/"];
        stages.set(stage, root);
        await mkdir(root, { recursive: true });
        break;
      }
      case "WORKDIR":
        workdir = rest;
        await mkdir(join(root, workdir), { recursive: true });
        break;
      case "COPY":
        await copy(rest, { root, workdir, stages, context, allowed, linked: modules !== null });
        break;
      case "RUN": {
        if (instead(rest)) break;
        const ran = await inside({
          root,
          modules: modules && `${workdir}/node_modules`,
          from: modules,
          argv: ["sh", "-c", `cd ${workdir} && ${rest}`],
        });
        const { code } = await ran.ended;
        if (code !== 0) throw new Error(`RUN ${rest} ended with ${code}: ${ran.stderr()} ${JSON.stringify(ran.facts)}`);
        break;
      }
      case "ENV":
        env.set(...(rest.split("=") as [string, string]));
        break;
      case "USER":
        user = rest;
        break;
      case "ENTRYPOINT":
        entry = JSON.parse(rest);
        break;
      case "CMD":
        command = JSON.parse(rest);
        break;
      case "HEALTHCHECK":
        healthcheck = JSON.parse(rest.slice(rest.indexOf("CMD ") + 4));
        break;
      case "ARG":
      case "EXPOSE":
      case "STOPSIGNAL":
        break;
      default:
        throw new Error(`${name || "an empty instruction"} is not known here: ${rest}`);
    }
  }
  return { root, user, entry, command, healthcheck };
}

interface Copying {
  readonly root: string;
  readonly workdir: string;
  readonly stages: ReadonlyMap<string, string>;
  readonly context: string;
  readonly allowed: readonly string[];
  readonly linked: boolean;
}

async function copy(rest: string, { root, workdir, stages, context, allowed, linked }: Copying): Promise<void> {
  const [, stage, paths = rest] = /^--from=(\w+) (.*)$/.exec(rest) ?? [];
  const parts = paths.split(" ");
  const to = parts.pop() ?? "";
  for (const path of parts) {
    if (stage === undefined && !allowed.includes(path)) throw new Error(`COPY ${path}: .dockerignore keeps it out`);
    // Mounted instead, see `play`.
    if (linked && path.endsWith("/node_modules")) continue;
    const target = join(root, workdir, to.endsWith("/") ? join(to, path.split("/").at(-1) ?? "") : to);
    await cp(join(stage === undefined ? context : (stages.get(stage) ?? ""), path), target, { recursive: true });
  }
}

const MOUNTS = `set -e; root=$0; modules=$1; at=$2; as=$3; shift 3
for folder in usr bin sbin lib lib64 etc opt; do
  if [ -L /$folder ]; then ln -sfn "$(readlink /$folder)" "$root/$folder"
  elif [ -d /$folder ]; then mkdir -p "$root/$folder"; mount --bind /$folder "$root/$folder"; mount -o remount,bind,ro "$root/$folder"; fi
done
mkdir -p "$root/dev" "$root/proc" "$root/tmp"; mount --rbind /dev "$root/dev"; mount --rbind /proc "$root/proc"; mount -t tmpfs none "$root/tmp"; chmod 1777 "$root/tmp"
if [ -n "$modules" ]; then mkdir -p "$root$at"; mount --bind "$modules" "$root$at"; mount -o remount,bind,ro "$root$at"; fi
exec chroot --userspec="$as" "$root" "$@"`;

interface Inside {
  readonly root: string;
  /** Where in it, and what, is mounted as the packages. */
  readonly modules: string | null;
  readonly from: string | null;
  readonly argv: readonly string[];
  readonly user?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A process in this root, which ends with it; what is mounted there is mounted for nobody else. */
export function inside({ root, modules, from, argv, user = "0:0", env = {} }: Inside): Promise<Process> {
  const given = Object.entries({ HOME: "/tmp", PATH: process.env.PATH ?? "", ...env }).map(([name, value]) => `${name}=${value}`);
  const stage = `exec unshare --mount --propagation private sh -c "$0" "$@"`;
  return startShell(stage, [MOUNTS, root, from ?? "", modules ?? "", user, "env", "-i", ...given, ...argv]);
}
