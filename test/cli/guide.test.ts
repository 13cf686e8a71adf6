/**
 * The commands of docs/guide/recovery.md, run as they stand by a shell, on a real database: what the guide promises is what happens.
 */
import { execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { promisify } from "node:util";
import { afterAll, expect, it, vi } from "vitest";
import { createRecords } from "../../src/recovery/records.ts";
import type { WithHome } from "../../src/store/home.ts";
import { createPostgresStore } from "../../src/store/postgres/index.ts";
import type { Store } from "../../src/store/store.ts";
import { startTestServer } from "../server/support.ts";
import { freePort } from "../support/free-port.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";
import { openShell, shellBlocks } from "../support/shell.ts";
import { removeWorkspaces, workspace } from "./support.ts";
import { terminal } from "./terminal.ts";

afterAll(removeWorkspaces);

function reached(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve();
    }).on("error", reject);
  });
}

/** Nothing is under way: every message has been attempted, every dead letter is grouped and evaluated. */
async function atRest(store: Store & WithHome): Promise<void> {
  // In this order: what dies between the two is seen by the second.
  const counts = await store.counts();
  const { uningested, evaluations } = await createRecords(store.home).stats([]);
  const moving = counts.filter(({ status }) => status === "pending" || status === "processing");
  expect([uningested, evaluations.unevaluated, evaluations.evaluating, moving]).toEqual([0, 0, 0, []]);
}

it("the recovery guide heals a group in the end", async () => {
  const cwd = await workspace();
  const schema = freshSchema();
  const store = createPostgresStore({ url: databaseUrl(), schema });
  const server = await startTestServer({ MAKEGOOD_POLL_MS: "50" }, { store });
  const rest = () => vi.waitFor(() => atRest(store), { timeout: 10_000, interval: 20 });
  await using shell = await openShell(
    cwd,
    { MAKEGOOD_URL: server.url },
    {
      async makegood({ args, env, stdin }) {
        const told = await terminal(args, { env, width: 100, stdin });
        // A person needs longer for the next line than a message for its first attempt.
        if (args[0] === "enqueue") await rest();
        return told;
      },
    },
  );
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
    const script = blocks.join("echo ------\n").replaceAll("4700", String(receiverPort));
    const stdout = await shell.run(script);
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
    await server.close({ drainMs: 500 });
    await dropSchema(schema);
  }
}, 60_000);
