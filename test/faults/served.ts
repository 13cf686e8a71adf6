/**
 * `makegood serve` as a black box: topics and messages by its API, a receiver behind it, and the question that ends each fault: is everything that
 * was accepted delivered, whole, with one effect for each key.
 */
import { expect } from "vitest";
import { type Process, startCli, until } from "../support/processes.ts";
import { type Receiver, sha256 } from "../support/receiver.ts";

export interface Served {
  readonly process: Process;
  readonly url: string;
  call(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }>;
}

/** `dist`: of another version than this one. */
export async function serve(env: Record<string, string>, cwd?: string, dist?: string): Promise<Served> {
  const process = await startCli(["serve"], { MAKEGOOD_PORT: "0", MAKEGOOD_POLL_MS: "200", ...env }, cwd, dist);
  const url = String((await process.fact(({ message }) => message === "listening")).url);
  return { process, url, call: (method, path, body) => call(`${url}/api/v1${path}`, method, body) };
}

async function call(url: string, method: string, body: unknown) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>) };
}

/** A topic with a sink at this receiver. */
export async function topicAt(
  served: Served,
  name: string,
  receiver: Receiver,
  more: Record<string, unknown> = {},
): Promise<void> {
  const sink = { kind: "http", url: receiver.url, timeout_ms: 2_000 };
  const retry = { policy: "exponential", attempts_max: 50, base_ms: 50, max_ms: 500 };
  const { status, body } = await served.call("PUT", `/topics/${name}`, { sink, retry, lease_ms: 3_000, ...more });
  expect(status, JSON.stringify(body)).toBeLessThan(300);
}

/** What was accepted, by key: the hash of what was sent and the id that came back. */
export class Accepted {
  readonly #sent = new Map<string, { readonly sha256: string; readonly id: string }>();

  get size(): number {
    return this.#sent.size;
  }

  get keys(): string[] {
    return [...this.#sent.keys()];
  }

  idOf(key: string): string {
    return this.#sent.get(key)?.id ?? "";
  }

  /** Sends one; true when it was accepted. */
  async send(served: Served, topic: string, key: string, payload: unknown, more: Record<string, unknown> = {}): Promise<boolean> {
    const answer = await served.call("POST", "/messages", { topic, key, payload, ...more }).catch(() => undefined);
    if (answer === undefined || answer.status >= 300) return false;
    this.#sent.set(key, { sha256: sha256(JSON.stringify(payload)), id: String(answer.body.id) });
    return true;
  }

  /** Waits until the receiver has them all and the store says so, then compares. */
  async delivered(served: Served, receiver: Receiver, ms = 60_000): Promise<void> {
    const missing = () => this.keys.filter((key) => !receiver.effects.has(key));
    await until(`${missing().length} of ${this.size} arrive`, () => missing().length === 0, ms).catch((error) => {
      throw new Error(`${error.message}; still missing: ${missing().slice(0, 5).join(", ")}`);
    });
    const open = new Set(this.#sent.values());
    let last = "";
    const told = async (): Promise<boolean> => {
      for (const one of [...open].slice(0, 50)) {
        const { body } = await served.call("GET", `/messages/${one.id}`);
        last = JSON.stringify(body);
        if (body.status !== "delivered") return false;
        open.delete(one);
      }
      return open.size === 0;
    };
    await until("all are told as delivered", told, ms).catch((error) => {
      throw new Error(`${error.message}; ${open.size} of ${this.size} are not, ${last}`);
    });
    for (const [key, { sha256: sent, id }] of this.#sent) {
      const mine = receiver.of(key);
      const found = { ids: [...new Set(mine.map((one) => one.id))], bodies: [...new Set(mine.map((one) => one.sha256))] };
      expect({ key, ...found, effects: mine.filter(({ effect }) => effect).length }).toEqual({
        key,
        ids: [id],
        bodies: [sent],
        effects: 1,
      });
    }
  }
}
