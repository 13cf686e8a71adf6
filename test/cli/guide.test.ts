/**
 * The commands of docs/guide/recovery.md, run as they stand by a shell, on a real database: what the guide promises is what happens. The
 * shell's `makegood` asks this process, which runs the program itself: starting Node for each of twenty commands would take longer than all
 * the rest.
 */
import { execFile, spawn } from "node:child_process";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it, vi } from "vitest";
import { createRecords } from "../../src/recovery/records.ts";
import type { WithHome } from "../../src/store/home.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { startTestServer } from "../server/support.ts";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { removeWorkspaces, workspace } from "./support.ts";
import { terminal } from "./terminal.ts";

afterAll(removeWorkspaces);

/** Shell blocks of a document, in order. */
function shellBlocks(text: string): string[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map((match) => match[1] as string);
}

function reached(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve();
    }).on("error", reject);
  });
}

/** Takes NUL-ended texts: how many arguments, each of them, the standard input. Gives back the output, and the exit code in the last line. */
async function listenForCommands(url: string, rest: () => Promise<void>): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let received = "";
    socket.setEncoding("utf8").on("data", async (data: string) => {
      received += data;
      const [count, ...texts] = received.split("\0").slice(0, -1);
      if (count === undefined || texts.length < Number(count) + 1) return;
      const args = texts.slice(0, Number(count));
      const { code, stdout, stderr } = await terminal(args, {
        env: { MAKEGOOD_URL: url },
        width: 100,
        stdin: texts.at(-1) ?? "",
      });
      // A person needs longer for the next line than a message for its first attempt.
      if (args[0] === "enqueue") await rest();
      socket.end(`${stdout}${stderr}${code}\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** Nothing is under way: every message has been attempted, every dead letter is grouped and evaluated. */
async function atRest(store: Store & WithHome): Promise<void> {
  // In this order: what dies between the two is seen by the second.
  const counts = await store.counts();
  const { uningested, evaluations } = await createRecords(store.home).stats([]);
  const moving = counts.filter(({ status }) => status === "pending" || status === "processing");
  expect([uningested, evaluations.unevaluated, evaluations.evaluating, moving]).toEqual([0, 0, 0, []]);
}

/** In the shell: everything but the last line is the output, the last line is the exit code. */
const shim = (port: number): string => `#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/${port}
printf '%s\\0' "$#" "$@" "$(cat)" >&3
mapfile -t lines <&3
code="\${lines[-1]}"
for line in "\${lines[@]::\${#lines[@]}-1}"; do printf '%s\\n' "$line"; done
exit "$code"
`;

it("the recovery guide heals a group in the end", async () => {
  const cwd = await workspace();
  const schema = freshSchema();
  const store = createPostgresStore({ url: databaseUrl(), schema });
  const server = await startTestServer({ MAKEGOOD_POLL_MS: "50" }, { store });
  const commands = await listenForCommands(server.url, () => vi.waitFor(() => atRest(store), { timeout: 10_000, interval: 20 }));
  const receiverPort = await freePort();
  const guide = await readFile(new URL("../../docs/guide/recovery.md", import.meta.url), "utf8");
  const [, , receiver = "", ...blocks] = shellBlocks(guide);
  const [file = "", starts = ""] = receiver.split("node receiver.mjs &\n");
  expect(starts).toContain("MAKEGOOD_URL");
  await promisify(execFile)("bash", ["-ec", file.replaceAll("4700", String(receiverPort))], { cwd });
  const child = spawn(process.execPath, ["receiver.mjs"], { cwd, stdio: "ignore" });
  try {
    // A person starts it and goes on reading: it is there before the first message.
    await vi.waitFor(() => reached(receiverPort), { timeout: 10_000, interval: 20 });
    await writeFile(join(cwd, "makegood"), shim((commands.address() as AddressInfo).port));
    await chmod(join(cwd, "makegood"), 0o755);
    const script = blocks.join("echo ------\n").replaceAll("4700", String(receiverPort));
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", `exec </dev/null\n${script}`], {
      cwd,
      env: { PATH: `${cwd}:${process.env.PATH}`, HOME: process.env.HOME ?? "" },
    });
    const [dead = "", group = "", why = "", executed = "", after = "", redriven = ""] = stdout.split("------\n");
    expect(dead.match(/ dead \(open\) /g)).toHaveLength(2);
    expect(group).toMatch(/http_429 +shop\/charge/);
    expect(group).toContain("Why they are together");
    expect(why).toMatch(/retry_exponential \(80%\)/);
    expect(executed).toMatch(/2 of 2 messages healed, 0 failed/);
    // One execution, whatever it healed (R2).
    expect(after).toMatch(/retry_exponential .* 1\/1/);
    expect(redriven).toMatch(/is done: [12] of [12] messages? healed, 0 failed/);
    const long = [group, why, executed, after].join("\n").split("\n");
    expect(long.filter((line) => line.length > 100)).toEqual([]);
  } finally {
    child.kill();
    commands.close();
    await server.close({ drainMs: 500 });
    await dropSchema(schema);
  }
}, 60_000);
