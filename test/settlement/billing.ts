/**
 * A billing service for the tests: real HTTP, tokens verified, a ledger with one effect per reservation, 409 with amount and
 * state for a repeat. Each call may be answered otherwise by a script: another status, a broken connection, silence. Reservations can
 * be read, too, if the test says so.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createServiceSigner, type ServiceSigner } from "../../src/sink/service-token.ts";
import { createServiceVerifier } from "../../src/sink/verify-service-token.ts";

export const SECRET = "a secret of the tests that is long enough";
export const ISSUER = "finn";
export const AUDIENCE = "billing";

export function testSigner(): ServiceSigner {
  return createServiceSigner({ alg: "HS256", secret: SECRET, issuer: ISSUER, audience: AUDIENCE });
}

export interface Call {
  readonly reservationId: string;
  readonly accountId: string;
  readonly actualCostMicro: string;
  readonly key: string;
  readonly subject: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Reply =
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string>; readonly afterMs?: number }
  /** What an honest service does: 200 the first time, 409 with amount and state afterwards. */
  | "honest"
  /** Acts, then breaks the connection. */
  | "act-and-reset"
  /** Acts, and never answers. */
  | "act-and-hang"
  | "reset";

export interface Billing extends AsyncDisposable {
  readonly url: string;
  readonly calls: Call[];
  /** Idempotency-Key → the cost that was settled; an effect happens once per key. */
  readonly ledger: ReadonlyMap<string, { readonly accountId: string; readonly amount: string }>;
  /** How often something was settled for this reservation; an honest service never gets past one. */
  effectsOf(reservationId: string): number;
  answer(next: Reply | ((call: Call, nth: number) => Reply)): void;
  callsOf(reservationId: string): Call[];
  /** What GET /api/internal/reservations/{id} answers; 404 unless said. `honest` is what the ledger says. */
  reservations(answer: (reservationId: string) => Exclude<Reply, "act-and-reset" | "act-and-hang"> | "hang"): void;
  /** The reservations that were read, with the ones whose token said so. */
  readonly read: { readonly reservationId: string; readonly tokenFor: string }[];
}

export async function startBilling(first: Reply | ((call: Call, nth: number) => Reply) = "honest"): Promise<Billing> {
  const verifier = createServiceVerifier({
    keys: [{ alg: "HS256", secret: SECRET }],
    issuer: ISSUER,
    audience: AUDIENCE,
  });
  const calls: Call[] = [];
  const ledger = new Map<string, { accountId: string; amount: string }>();
  const sockets = new Set<Socket>();
  const perId = new Map<string, number>();
  const effects: string[] = [];
  const read: { reservationId: string; tokenFor: string }[] = [];
  let answer = first;
  let reservations: Parameters<Billing["reservations"]>[0] = () => ({ status: 404 });

  const settle = (call: Call): Extract<Reply, { status: number }> => {
    // By the key, as a receiver does that trusts the header: another key would be another effect.
    const known = ledger.get(call.key);
    if (known !== undefined) {
      const body = { reservationId: call.reservationId, accountId: known.accountId, actualCostMicro: known.amount };
      return { status: 409, body: { ...body, state: "finalized" } };
    }
    effects.push(call.reservationId);
    ledger.set(call.key, { accountId: call.accountId, amount: call.actualCostMicro });
    return { status: 200, body: { state: "finalized" } };
  };

  const respond = (response: ServerResponse, call: Call, reply: Reply): void => {
    if (reply === "reset") return void response.socket?.resetAndDestroy();
    if (reply === "act-and-hang") return void settle(call);
    if (reply === "act-and-reset") {
      settle(call);
      return void response.socket?.resetAndDestroy();
    }
    const { status, body, headers = {}, afterMs = 0 } = reply === "honest" ? settle(call) : reply;
    const text = typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body);
    setTimeout(() => response.writeHead(status, headers).end(text), afterMs);
  };

  const tell = (response: ServerResponse, reservationId: string): void => {
    const reply = reservations(reservationId);
    if (reply === "hang") return;
    if (reply === "reset") return void response.socket?.resetAndDestroy();
    const known = ledger.get(reservationId);
    const told = known && { reservationId, accountId: known.accountId, actualCostMicro: known.amount, state: "finalized" };
    const { status, body, headers = {} } = reply === "honest" ? { status: known ? 200 : 404, body: told } : reply;
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body ?? ""));
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("error", () => undefined);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const verified = await verifier.verify(request.headers.authorization);
      if (!verified.ok) return void response.writeHead(verified.status).end(verified.reason);
      const asked = /^\/api\/internal\/reservations\/([^/]+)$/.exec(request.url ?? "")?.[1];
      if (request.method === "GET" && asked !== undefined) {
        const reservationId = decodeURIComponent(asked);
        read.push({ reservationId, tokenFor: verified.reservationId });
        return tell(response, reservationId);
      }
      const body = Buffer.concat(chunks).toString();
      const given = JSON.parse(body) as Pick<Call, "reservationId" | "accountId" | "actualCostMicro">;
      const call: Call = {
        ...given,
        key: String(request.headers["idempotency-key"] ?? ""),
        subject: verified.subject,
        headers: request.headers,
        body,
      };
      calls.push(call);
      const nth = (perId.get(call.reservationId) ?? 0) + 1;
      perId.set(call.reservationId, nth);
      if (request.url !== "/api/internal/finalize") return void response.writeHead(404).end();
      respond(response, call, typeof answer === "function" ? answer(call, nth) : answer);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    ledger,
    answer(next) {
      answer = next;
    },
    reservations(next) {
      reservations = next;
    },
    read,
    effectsOf: (id) => effects.filter((one) => one === id).length,
    callsOf: (id) => calls.filter(({ reservationId }) => reservationId === id),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
