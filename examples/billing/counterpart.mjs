// The counterpart that settles charges: it refuses one request in four, breaks the connection after it has acted one time in twelve, and
// now and then answers too late. It verifies the service's token, acts once per Idempotency-Key, and answers a repeat with amount and state.
import { createServer } from "node:http";
import { load } from "../package.mjs";

const { createServiceVerifier } = await load("presets/index.js");

export function startCounterpart({ secret, issuer, audience }) {
  const verifier = createServiceVerifier({ keys: [{ alg: "HS256", secret }], issuer, audience });
  const ledger = new Map();
  const seen = { requests: 0, refused: 0, broken: 0, repeats: 0, forged: 0 };
  let down = false;
  let turns = 0;

  const settle = (charge, key) => {
    const known = ledger.get(key);
    if (known) {
      seen.repeats++;
      return [409, { ...known, state: "finalized" }];
    }
    // This reservation was given back by a person meanwhile: no repeat will change that.
    if (charge.reservationId.endsWith("-released")) return [409, { reservationId: charge.reservationId, state: "released" }];
    ledger.set(key, charge);
    return [200, { state: "finalized" }];
  };

  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.requests++;
    const answer = (status, value) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    const token = await verifier.verify(request.headers.authorization);
    if (!token.ok) {
      seen.forged++;
      return answer(token.status, { error: token.reason });
    }
    if (request.url !== "/api/internal/finalize") return answer(404, {});
    const turn = turns++;
    if (down || turn % 4 === 1) {
      seen.refused++;
      return answer(503, { error: "come back later" });
    }
    const [status, value] = settle(JSON.parse(body), request.headers["idempotency-key"]);
    if (turn % 12 === 6) {
      seen.broken++;
      return request.socket.destroy();
    }
    // Longer than the service waits: it will never know that this one landed.
    if (turn % 40 === 10) return setTimeout(() => answer(status, value), 1_500);
    answer(status, value);
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const close = () => {
        server.closeAllConnections();
        server.close();
      };
      const setDown = (is) => {
        down = is;
        // Back from an outage it answers a few well: the one call that finds out whether it is back would else need luck.
        turns = 2;
      };
      resolve({ ledger, seen, setDown, url: `http://127.0.0.1:${server.address().port}`, close });
    });
  });
}
