/** Loaded before a process of ours (`--import`): its wall clock is off by CLOCK_OFF_MS, and SIGUSR2 sets it back by five seconds. */
const { now } = Date;
let offMs = Number(process.env.CLOCK_OFF_MS ?? 0);
Date.now = () => now() + offMs;
process.on("SIGUSR2", () => {
  offMs -= 5_000;
});
