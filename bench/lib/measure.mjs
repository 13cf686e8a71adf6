// Measures how fast something can be called, and how fast the machine is at this minute.
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { nowMs } from "./time.mjs";

/** Runs `callers` loops of `call` for a while; each call says how many messages it carried. Returns messages per second. */
export async function ratePerSecond(durationMs, callers, call) {
  const startMs = nowMs();
  const endMs = startMs + durationMs;
  let messages = 0;
  const loop = async (caller) => {
    while (nowMs() < endMs) {
      // Not `messages += await …`: that would read the sum before the wait and lose what other callers added meanwhile.
      const carried = await call(caller);
      messages += carried;
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => loop(caller)));
  return (messages * 1000) / (nowMs() - startMs);
}

/** A CPU loop and the disk's fdatasync rate: a noisy minute is then visible in the results. */
export function calibrate(directory, durationMs) {
  const cpuStartMs = nowMs();
  let hash = 0;
  for (let i = 0; i < 3e7; i++) hash = (hash * 31 + i) | 0;
  const cpuLoopMs = nowMs() - cpuStartMs + (hash === 0.5 ? 1 : 0);

  const path = join(directory, "calibration");
  const file = openSync(path, "w");
  const block = Buffer.alloc(512, "x");
  const startMs = nowMs();
  let syncs = 0;
  while (nowMs() - startMs < durationMs) {
    writeSync(file, block, 0, block.length, 0);
    fdatasyncSync(file);
    syncs++;
  }
  const fdatasyncPerSecond = (syncs * 1000) / (nowMs() - startMs);
  closeSync(file);
  rmSync(path);
  return { cpuLoopMs, fdatasyncPerSecond };
}
