/**
 * A shell that runs the commands of a document as they stand. Its `makegood` asks this process, which runs the program itself: starting Node
 * for each of twenty commands would take longer than all the rest. Other programs may be given to it by name.
 */
import { execFile } from "node:child_process";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import * as processes from "../cli/support.ts";
import { terminal } from "../cli/terminal.ts";

export interface Answered {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Command {
  readonly args: readonly string[];
  readonly stdin: string;
  /** What the shell has exported. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export type Program = (command: Command) => Promise<Answered>;

export interface Shell extends AsyncDisposable {
  /** Ends at the first command that fails, and throws what was printed until then. */
  run(script: string): Promise<string>;
}

/** Shell blocks of a document, in order. */
export function shellBlocks(text: string): string[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map((match) => match[1] as string);
}

/** They read and write files where they are started, so they are processes of their own. */
const ON_FILES: readonly string[] = ["export", "import", "backup", "restore", "verify"];

const inColumns =
  (width: number | null): Program =>
  async ({ args, stdin, env, cwd }) => {
    if (!ON_FILES.includes(args[0] ?? "")) return terminal(args, { env, cwd, stdin, ...(width === null ? {} : { width }) });
    const { code, ...told } = await processes.makegood(cwd, args, env, stdin);
    return { ...told, code: code ?? 1 };
  };

/** In the shell: asks with NUL-ended texts, and gets the exit code, the output and the errors likewise. */
const shim = (name: string, port: number): string => `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/${port}
mapfile -d '' -t exported < <(env -0)
printf '%s\\0' "${name}" "$PWD" "$#" "$@" "$(cat)" "\${#exported[@]}" "\${exported[@]}" >&3
IFS= read -r -d '' code <&3
IFS= read -r -d '' output <&3
IFS= read -r -d '' errors <&3
printf '%s' "$output"
printf '%s' "$errors" >&2
exit "$code"
`;

interface Asked extends Command {
  readonly name: string;
}

/** Null: not all of it is here yet. */
function read(received: string): Asked | null {
  const texts = received.split("\0").slice(0, -1);
  const [name, cwd, count, ...rest] = texts;
  if (name === undefined || cwd === undefined || count === undefined) return null;
  const args = rest.slice(0, Number(count));
  const [stdin, exported, ...variables] = rest.slice(Number(count));
  if (stdin === undefined || exported === undefined || variables.length < Number(exported)) return null;
  const env = variables.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]);
  return { name, cwd, args, stdin, env: Object.fromEntries(env) as Record<string, string> };
}

/** `env` is what `makegood` and the script see beside PATH and HOME. `width`: of the terminal; null: everything in full, as into a pipe. */
export async function openShell(
  cwd: string,
  env: Readonly<Record<string, string>>,
  programs: Readonly<Record<string, Program>> = {},
  width: number | null = 100,
): Promise<Shell> {
  const all: Readonly<Record<string, Program>> = { makegood: inColumns(width), ...programs };
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let received = "";
    socket.setEncoding("utf8").on("data", async (data: string) => {
      received += data;
      const asked = read(received);
      if (asked === null) return;
      const answer = all[asked.name]?.(asked) ?? Promise.resolve({ code: 127, stdout: "", stderr: "no such program" });
      const { code, stdout, stderr } = await answer.catch((error) => ({ code: 1, stdout: "", stderr: `${error}\n` }));
      socket.end(`${code}\0${stdout}\0${stderr}\0`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bin = join(cwd, "bin");
  await mkdir(bin, { recursive: true });
  for (const name of Object.keys(all)) {
    await writeFile(join(bin, name), shim(name, (server.address() as AddressInfo).port));
    await chmod(join(bin, name), 0o755);
  }
  return {
    async run(script) {
      const { PATH = "", HOME = "" } = process.env;
      const how = { cwd, env: { HOME, ...env, PATH: `${bin}:${PATH}` }, maxBuffer: 1 << 26 };
      const ran = promisify(execFile)("bash", ["--norc", "-euo", "pipefail", "-c", `exec </dev/null 2>&1\n${script}`], how);
      const { stdout } = await ran.catch((error: { stdout: string }) => {
        throw new Error(`a command of the document failed:\n${error.stdout}`, { cause: error });
      });
      return stdout;
    },
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
