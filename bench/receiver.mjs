// A real HTTP receiver in a process of its own: reads each body, answers 200, and tells how many came, when, and how late.
import { createServer } from "node:http";
import { nowMs } from "./lib/time.mjs";

let expected = Number.POSITIVE_INFINITY;
let received = 0;
let lastMs = 0;
let latenciesMs = [];
let seen = new Uint8Array(0);

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    const { seq, at } = JSON.parse(body);
    lastMs = nowMs();
    received++;
    seen[seq]++;
    if (at > 0) latenciesMs.push(lastMs - at);
    response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}');
    if (received === expected) process.send({ type: "complete" });
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.send({ type: "listening", port: server.address().port }));

process.on("message", (command) => {
  if (command.type === "expect") {
    expected = command.count;
    received = 0;
    latenciesMs = [];
    seen = new Uint8Array(command.count);
    process.send({ type: "expecting" });
  }
  if (command.type === "report") {
    const distinct = seen.reduce((sum, times) => sum + Math.min(times, 1), 0);
    process.send({ type: "report", received, distinct, lastMs, latenciesMs });
  }
});
process.on("disconnect", () => process.exit(0));
