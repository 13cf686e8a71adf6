// A chat service in one file: a turn reserves quota, streams from a (pretended) provider, and is finalised exactly once. It speaks
// HTTP on 127.0.0.1, publishes usage to BILLING_URL, and keeps everything in the PostgreSQL of DATABASE_URL.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { load } from "../package.mjs";

const { createMakegood, reject } = await load("index.js");
const { createPostgresStore, createPostgresUsageStore } = await load("store/postgres/index.js");
const { createUsage, createUsagePublishers, usageTopic } = await load("presets/index.js");

const url = process.env.DATABASE_URL;
const tenantId = process.env.TENANT_ID;
// Credits a month. A real service knows the plan of its user; here the request says it.
const PLANS = { free: 20_000, paid: 1_000_000 };
const PAUSE_MS = { patient: 1_000, slow: 60_000 };

// The publisher is a plugin, chosen by name when a message is delivered. This one posts to billing, which knows each key once.
const publishers = createUsagePublishers(
  {
    "minichat-quota-policy": {
      async publishUsage(snapshot, { idempotencyKey, signal }) {
        const answer = await fetch(process.env.BILLING_URL, {
          method: "POST",
          headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
          body: JSON.stringify(snapshot),
          signal,
        });
        if (answer.status === 422) return reject("billing refuses this snapshot");
        if (!answer.ok) throw new Error(`billing answered ${answer.status}`);
      },
    },
  },
  process.env.PUBLISHER ?? "minichat-quota-policy",
);
// A short lease: what a killed process had in hand is taken over after five seconds instead of thirty.
const topic = usageTopic({ publishers, leaseMs: 5_000, timeoutMs: 3_000, retry: { policy: "usage", baseMs: 100 } });
const mg = await createMakegood({ store: createPostgresStore({ url }), topics: [topic], pollMs: 200 });
const usage = await createUsage({ mg, store: createPostgresUsageStore({ url }), topic });
mg.work();
usage.watch({ everyMs: 500, idleMs: 60_000 });

/** What a provider would stream: token counts at the end, and identifiers of its own that must not leave the house. */
async function* provider(kind) {
  if (kind === "refused") throw Object.assign(new Error("no connection"), { sent: false });
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS[kind] ?? 5));
    if (kind === "breaks" && i === 1) throw Object.assign(new Error("stream broke"), { sent: true });
    yield { text: "word " };
  }
  yield { usage: { inputTokens: 800, outputTokens: kind === "long" ? 9_000 : 300, response_id: `resp_${randomUUID()}` } };
}

async function runTurn({ userId, kind, plan = "paid" }, signal) {
  const turn = { tenantId, turnId: randomUUID(), requestId: randomUUID() };
  const reserved = await usage.reserve({
    ...turn,
    userId,
    chatId: randomUUID(),
    policyVersion: "2026-11.1",
    model: "house-large",
    period: "2026-11",
    estimatedInputTokens: 1_000,
    outputTokensMax: 2_000,
    generationFloorTokens: 50,
    inputRate: 1_000,
    outputRate: 4_000,
    buckets: [{ name: "total", limitCredits: PLANS[plan] }],
  });
  if (reserved.kind !== "reserved") return { status: 429, body: { error: reserved.kind } };
  process.stdout.write(`${JSON.stringify({ type: "reserved", turnId: turn.turnId })}\n`);
  let end = { outcome: "aborted", reason: "client_gone" };
  let text = "";
  try {
    for await (const chunk of provider(kind)) {
      if (signal.aborted) break;
      text += chunk.text ?? "";
      if (chunk.usage) end = { outcome: "completed", usage: chunk.usage };
      await usage.progress(turn);
    }
  } catch (error) {
    end = { outcome: "failed", requestSent: error.sent, reason: "provider_error" };
  }
  // Committed when this returns: only now may the client hear that the turn is over.
  const final = await usage.finalize({ ...turn, ...end });
  return { status: 200, body: { turnId: turn.turnId, text, state: final.turn.state, method: final.turn.settlement.method } };
}

const server = createServer((request, response) => {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  let text = "";
  request.on("data", (chunk) => {
    text += chunk;
  });
  request.on("end", () => {
    runTurn(JSON.parse(text), gone.signal).then(
      ({ status, body }) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
      (error) => response.writeHead(500).end(String(error)),
    );
  });
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ type: "ready", port: server.address().port })}\n`);
});
process.on("SIGTERM", async () => {
  server.close();
  await usage.close();
  await mg.close();
  process.exit(0);
});
