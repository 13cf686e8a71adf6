// The parent's hand on the HTTP receiver process.
import { fork } from "node:child_process";

const receiverPath = new URL("../receiver.mjs", import.meta.url);

export async function startReceiver() {
  const child = fork(receiverPath, { serialization: "advanced", stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const answer = (type, timeoutMs = 10_000) =>
    new Promise((resolve, reject) => {
      const done = (settle, value) => {
        clearTimeout(timer);
        child.off("message", onMessage);
        child.off("exit", onExit);
        settle(value);
      };
      const onMessage = (message) => {
        if (message.type === type) done(resolve, message);
      };
      const onExit = () => done(reject, new Error("the HTTP receiver ended early"));
      const timer = setTimeout(
        () => done(reject, new Error(`the HTTP receiver: no "${type}" in ${timeoutMs / 1000} s`)),
        timeoutMs,
      );
      child.on("message", onMessage);
      child.once("exit", onExit);
    });
  const { port } = await answer("listening");

  return {
    url: `http://127.0.0.1:${port}/`,
    /** Begins to count anew; the returned promise resolves when that many have come. */
    async expect(count, timeoutMs) {
      child.send({ type: "expect", count });
      await answer("expecting");
      const complete = answer("complete", timeoutMs);
      complete.catch(() => {});
      return { complete };
    },
    async report() {
      child.send({ type: "report" });
      return answer("report");
    },
    async close() {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.disconnect();
      await exited;
    },
  };
}
