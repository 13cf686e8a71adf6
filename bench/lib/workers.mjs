// Starts worker processes of one peer, lets them go at the same moment, and gathers what they saw.
import { fork } from "node:child_process";
import { nowMs } from "./time.mjs";

const workerPath = new URL("../worker.mjs", import.meta.url);
const running = new Set();

/** Ends the workers that a failed measurement left behind: they would disturb the next one. */
export function killStrays() {
  for (const child of running) child.kill("SIGKILL");
}

export async function startWorkers({ peer, mode, context, processes = 1, seqMax = 0, windowSize = 0 }) {
  const { pgUrl, redis, http } = context;
  const workers = Array.from({ length: processes }, () => {
    const child = fork(workerPath, { serialization: "advanced", stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const worker = { child, handled: 0, report: null };
    running.add(child);
    worker.ready = new Promise((resolve, reject) => {
      child.on("message", (message) => {
        if (message.type === "ready") resolve();
        if (message.type === "handled") worker.handled = message.handled;
        if (message.type === "report") worker.report = message;
      });
      worker.exited = new Promise((exit) => child.once("exit", exit)).then((code) => {
        reject(new Error(`a worker of ${peer.name} ended early (exit code ${code})`));
        running.delete(child);
      });
    });
    child.send({ type: "init", peer: peer.key, mode, context: { pgUrl, redis, http }, seqMax, windowSize });
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.ready));

  const handled = () => workers.reduce((sum, worker) => sum + worker.handled, 0);
  return {
    go() {
      for (const { child } of workers) child.send({ type: "go" });
    },
    /** False when it did not come to pass in time. */
    async until(condition, timeoutMs) {
      const endMs = nowMs() + timeoutMs;
      while (!condition(handled())) {
        if (nowMs() > endMs || workers.some(({ child }) => !child.connected)) return false;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return true;
    },
    async stop() {
      for (const { child } of workers) if (child.connected) child.send({ type: "stop" });
      const timer = setTimeout(() => {
        for (const { child } of workers) child.kill("SIGKILL");
      }, 30_000);
      timer.unref();
      await Promise.all(workers.map((worker) => worker.exited));
      clearTimeout(timer);
      if (workers.some((worker) => worker.report === null)) throw new Error(`a worker of ${peer.name} ended without a report`);
      return workers.map((worker) => worker.report);
    },
  };
}

/**
 * Lets workers take messages until `target` of `count` are handled. The rate runs from the start of the workers to the
 * last handler call; the settling of the last batches is outside of it, for every peer alike.
 */
export async function drain(peer, context, { count, target = count, processes = 1, windowSize = 0, timeoutMs }) {
  const workers = await startWorkers({ peer, mode: "drain", context, processes, seqMax: count, windowSize });
  workers.go();
  const inTime = await workers.until((handled) => handled >= target, timeoutMs);
  const reports = await workers.stop();
  if (!inTime) throw new Error(`${peer.name} did not handle ${target} messages in ${timeoutMs / 1000} s`);

  const handled = reports.reduce((sum, report) => sum + report.handled, 0);
  const startMs = Math.min(...reports.map((report) => report.startMs));
  const lastMs = Math.max(...reports.map((report) => report.lastMs));
  const cpuUs = reports.reduce((sum, report) => sum + report.cpuUs, 0);
  let distinct = 0;
  for (let seq = 0; seq < count; seq++) if (reports.some((report) => report.seen[seq] > 0)) distinct++;
  return {
    handled,
    distinct,
    rate: (handled * 1000) / (lastMs - startMs),
    cpuUsPerMessage: cpuUs / handled,
    /** The moments at which one process had handled 0, 1, 2 … windows. */
    windowsMs: [reports[0].startMs, ...reports[0].windowsMs],
  };
}

/** Messages per second between two windows of a drain. */
export function windowRate(windowsMs, windowSize, from, to) {
  return ((to - from) * windowSize * 1000) / (windowsMs[to] - windowsMs[from]);
}
