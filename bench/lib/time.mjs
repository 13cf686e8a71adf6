// One clock for every process of a run: CLOCK_MONOTONIC, so that times taken in two processes can be subtracted.

const offsetMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();

export const nowMs = () => offsetMs + performance.now();

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `send` at a steady rate, by due times and not by gaps, so that a late call does not shift the ones after it. */
export async function paced(perSecond, count, send) {
  const startMs = nowMs();
  for (let i = 0; i < count; i++) {
    const waitMs = startMs + (i * 1000) / perSecond - nowMs();
    if (waitMs > 0) await sleep(waitMs);
    send(i);
  }
}
