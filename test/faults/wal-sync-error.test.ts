/**
 * Fault 25: the disk refuses to sync PostgreSQL's log (EIO, injected by strace). The server ends itself, as it must; what was under way is told as
 * unknown and never as failed or accepted; and when the server is started again all that was acknowledged is there once, repeats included.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { topic } from "../../src/index.ts";
import { findTool } from "../support/find-tool.mjs";
import { ownPostgres } from "../support/own-postgres.ts";
import { until } from "../support/processes.ts";
import { codeOf } from "./redis-scene.ts";
import { newMessage, scene } from "./scene.ts";

vi.setConfig({ testTimeout: 120_000 });

/** From now on no process of this server can sync a file. Resolves when strace is at work; it ends with the server. */
async function refuseSyncs(postmaster: number): Promise<() => Promise<void>> {
  const strace = await findTool({ files: ["strace"], packages: ["strace"], need: "the test of a failing disk needs it" });
  const children = await readFile(`/proc/${postmaster}/task/${postmaster}/children`, "utf8");
  const pids = [postmaster, ...children.split(" ").map(Number).filter(Boolean)].flatMap((pid) => ["-p", String(pid)]);
  const inject = ["-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO"];
  const child = spawn(strace, ["-f", ...inject, ...pids], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (text) => {
    said += String(text);
  });
  await until("strace is attached", () => {
    if (child.exitCode !== null) throw new Error(`strace could not attach, and the test of a failing disk needs it: ${said}`);
    return said.includes("attached");
  });
  return async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
}

it("fault 25: PostgreSQL cannot sync its log: it ends, outcomes are unknown, and after a start each message is there once", async () => {
  const server = await ownPostgres({ settings: { restart_after_crash: "off" } });
  await using fault = await scene({ url: server.url, topics: [topic("sync/fails", { sink: () => undefined, leaseMs: 3_000 })] });
  const body = '{"n":1}';
  const told: { readonly message: ReturnType<typeof newMessage>; readonly code: string }[] = [];
  const enough = new AbortController();
  const callers = Array.from({ length: 4 }, async (_, caller) => {
    for (let n = 0; !enough.signal.aborted; n++) {
      const message = newMessage("sync/fails", `c${caller}-${n}`, body);
      told.push({ message, code: await codeOf(fault.mg.store.enqueue([message])) });
      if (told.at(-1)?.code !== "accepted") await sleep(50);
    }
  });
  const count = (...codes: string[]) => told.filter(({ code }) => codes.includes(code)).length;
  await until("messages are accepted", () => count("accepted") > 100);
  const stopStrace = await refuseSyncs(server.pid);
  await server.ended();
  await stopStrace();
  await until("callers have heard of it", () => count("outcome_unknown") > 0 && count("store_unavailable") > 0);
  enough.abort();
  await Promise.all(callers);
  expect(await server.log()).toMatch(/PANIC: {2}could not (fdatasync|fsync) file/);
  // Never "failed" for what may be there: the row of the one whose sync failed often is.
  expect([...new Set(told.map(({ code }) => code))].sort()).toEqual(["accepted", "outcome_unknown", "store_unavailable"]);

  await server.start({});
  for (const { message, code } of told) {
    if (code === "accepted") fault.history.ok(message.key as string, body);
    if (code === "outcome_unknown") {
      // The same id again: one message, whether it was there or not.
      expect(await codeOf(fault.store.enqueue([message]))).toBe("accepted");
      fault.history.ok(message.key as string, body);
    }
  }
  fault.mg.work();
  await fault.settled();
  expect(await fault.check({})).toEqual([]);
});
