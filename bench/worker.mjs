// A worker process of one peer: takes messages when told to go, and on stop reports what it handled, when, and at what CPU.
import { nowMs } from "./lib/time.mjs";

const state = { handled: 0, startMs: 0, lastMs: 0, latenciesMs: [], windowsMs: [], seen: new Uint8Array(0), cpuStart: null };
let worker;
let windowSize = 0;

function onMessage(payload) {
  state.handled++;
  state.seen[payload.seq]++;
  state.lastMs = nowMs();
  if (payload.at > 0) state.latenciesMs.push(state.lastMs - payload.at);
  if (windowSize > 0 && state.handled % windowSize === 0) state.windowsMs.push(state.lastMs);
}

const commands = {
  async init(command) {
    const { default: peer } = await import(`./peers/${command.peer}.mjs`);
    windowSize = command.windowSize;
    state.seen = new Uint8Array(command.seqMax);
    worker = await peer.worker(command.context, command.mode, onMessage);
    process.send({ type: "ready" });
  },
  async go() {
    let reported = 0;
    setInterval(() => {
      if (state.handled !== reported) process.send({ type: "handled", handled: state.handled });
      reported = state.handled;
    }, 10);
    state.startMs = nowMs();
    state.cpuStart = process.cpuUsage();
    await worker.start();
  },
  async stop() {
    const cpu = process.cpuUsage(state.cpuStart);
    await worker.stop();
    const { handled, startMs, lastMs, latenciesMs, windowsMs, seen } = state;
    const report = { type: "report", handled, startMs, lastMs, latenciesMs, windowsMs, seen, cpuUs: cpu.user + cpu.system };
    process.send(report, () => process.exit(0));
  },
};

process.on("message", (command) => {
  commands[command.type](command).catch((error) => {
    console.error(error);
    process.exit(1);
  });
});
process.on("disconnect", () => process.exit(1));
