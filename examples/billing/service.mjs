// A billing service in one file: POST / charges a reservation, GET /health says how much waits. It settles with the counterpart at
// BILLING_URL; what cannot be settled now is kept in the PostgreSQL of DATABASE_URL and replayed from there.
import { createServer } from "node:http";
import { load } from "../package.mjs";

const { createPostgresStore } = await load("store/postgres/index.js");
const { createServiceSigner, createSettlementClient } = await load("presets/index.js");
const { DATABASE_URL, BILLING_URL, TOKEN_SECRET, TOKEN_ISSUER, TOKEN_AUDIENCE } = process.env;

const store = createPostgresStore({ url: DATABASE_URL });
const settlement = createSettlementClient({
  billingUrl: BILLING_URL,
  s2sSigner: createServiceSigner({ alg: "HS256", secret: TOKEN_SECRET, issuer: TOKEN_ISSUER, audience: TOKEN_AUDIENCE }),
  dlqStore: store,
  timeoutMs: 1_000,
  // Seconds instead of minutes, so that the example is over before you have forgotten it.
  maxRetries: 20,
  retryDelaysMs: [200, 400, 800],
});
await settlement.ready();
settlement.start({ everyMs: 200 });

const server = createServer(async (request, response) => {
  const answer = (status, value) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  const billing = await settlement.health();
  if (request.url === "/health") return answer(200, { billing });
  // A service that could not keep what goes wrong should not take money.
  if (!billing.ready_for_billing) return answer(503, { error: "not ready for billing" });
  let body = "";
  for await (const chunk of request) body += chunk;
  // Never throws: the answer is one of finalized, idempotent and dlq.
  answer(200, await settlement.finalize(JSON.parse(body)));
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ type: "ready", port: server.address().port })));

process.once("SIGTERM", async () => {
  server.close();
  await settlement.close();
  await store.close();
  process.exit(0);
});
