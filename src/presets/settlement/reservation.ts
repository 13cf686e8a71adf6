/**
 * Reads a reservation from the billing service: the other half of what DF-20 asks for, used when a 409 carries nothing to compare.
 * It never throws and never takes longer than the time it is given; whatever is not a whole 200 is no answer.
 */
import type { Pool } from "undici";
import { MakegoodError } from "../../message/errors.ts";
import type { Clock } from "../../platform/clock.ts";

export interface Asked {
  readonly path: string;
  readonly headers: readonly string[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A reservation is a few fields; what is longer than this is something else. */
const BODY_BYTES_MAX = 16_384;
const ID = "{id}";

/** The address of a reservation below `base`. Null for an id that would change the path instead of standing in it. */
export function reservationPath(base: string, template: string, reservationId: string): string | null {
  if (reservationId === "." || reservationId === "..") return null;
  return base + template.replace(ID, () => encodeURIComponent(reservationId));
}

/** A path of ours, not an address: the token is for this service and goes nowhere else. */
export function checkReservationPath(template: string): void {
  const good = typeof template === "string" && /^\/[\x21-\x7e]*$/.test(template) && template.split(ID).length === 2;
  if (good && !template.startsWith("//") && !/[?#\\]/.test(template)) return;
  const what = `reservationPath must be a path below billingUrl with ${ID} in it, such as /api/internal/reservations/${ID}`;
  throw new MakegoodError("invalid_config", what);
}

export async function readReservation(pool: Pool, asked: Asked, clock: Clock): Promise<string | null> {
  const late = new AbortController();
  const timer = clock.after(asked.timeoutMs, () => late.abort());
  const signal = AbortSignal.any([asked.signal, late.signal]);
  try {
    const { path } = asked;
    const headers = [...asked.headers];
    const limits = { signal, headersTimeout: 0, bodyTimeout: 0 };
    const { statusCode, headers: told, body } = await pool.request({ path, method: "GET", headers, ...limits });
    // A body that is left alone says so as an error that nobody waits for.
    body.on("error", () => undefined);
    const encoding = told["content-encoding"];
    if (statusCode !== 200 || (encoding !== undefined && encoding !== "identity")) {
      body.destroy();
      return null;
    }
    return await textOf(body);
  } catch {
    return null;
  } finally {
    timer.cancel();
  }
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    // Leaving the loop closes the connection with the rest of it.
    if (bytes > BODY_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
