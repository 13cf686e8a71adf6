// The counterpart: a billing service that fails one request in four, sometimes after it has acted, and acts once for each key.
import { createServer } from "node:http";

export function startBilling() {
  const ledger = new Map();
  const seen = { requests: 0, refused: 0, repeats: 0 };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const turn = seen.requests++ % 8;
      if (turn === 1) {
        seen.refused++;
        response.writeHead(503).end();
        return;
      }
      const key = request.headers["idempotency-key"];
      if (ledger.has(key)) seen.repeats++;
      else ledger.set(key, JSON.parse(body));
      // It has acted; the answer is lost all the same.
      if (turn === 5) request.socket.destroy();
      else response.writeHead(200).end();
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve({ ledger, seen, url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() });
    });
  });
}
