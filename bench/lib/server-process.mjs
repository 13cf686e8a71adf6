// A server in a process of its own: started, waited for until it answers, and ended.
import { spawn } from "node:child_process";
import { freePort } from "../services/directory.mjs";
import { sleep } from "./time.mjs";

/** `program(port)` says what to run: arguments of node and the environment. Answered: `path` gives 200. */
export async function startServer(program, path) {
  const port = await freePort();
  const { args, env } = program(port);
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "inherit"] });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const base = `http://127.0.0.1:${port}`;
  for (const endMs = Date.now() + 20_000; ; await sleep(50)) {
    const answer = await fetch(base + path).catch(() => null);
    await answer?.arrayBuffer();
    if (answer?.ok) break;
    if (child.exitCode !== null || Date.now() > endMs) {
      child.kill("SIGKILL");
      throw new Error(`the server ${args.join(" ")} does not answer at ${path}`);
    }
  }
  return {
    base,
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
      await exited;
      clearTimeout(timer);
    },
  };
}
