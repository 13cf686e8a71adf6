/**
 * A Makegood on a real Redis with the home of its recovery in a real PostgreSQL, a receiver whose answer a case chooses, and what the cases
 * ask of both sides.
 */
import { expect, vi } from "vitest";
import { createMakegood, type Makegood, type MakegoodOptions } from "../../../src/create.ts";
import type { MessageView } from "../../../src/message/message.ts";
import type { Outcome } from "../../../src/message/outcome.ts";
import type { Candidate } from "../../../src/recovery/candidates/candidate.ts";
import type { Recovery } from "../../../src/recovery/recovery.ts";
import { createPostgresStore } from "../../../src/store/postgres/index.ts";
import { createRedisStore } from "../../../src/store/redis/index.ts";
import { topic } from "../../../src/topic/topic.ts";
import { atEnd } from "../../support/at-end.ts";
import { databaseUrl, dropSchema, freshSchema } from "../../support/postgres.ts";
import { type RedisServer, startRedis } from "../../support/redis-server.ts";
import { freshPrefix } from "../../support/redis-store.ts";

export const ANN = { actor: "ann", actorType: "human" } as const;
export const PATIENCE = { timeout: 20_000, interval: 100 };

let server: Promise<RedisServer> | undefined;
// It ends with the file that started it, and the next file of the worker shares this module.
atEnd(() => {
  server = undefined;
});
export const redis = (): Promise<RedisServer> => {
  server ??= startRedis();
  return server;
};

export interface Receiver {
  /** What it answers to a payload's `n`; undefined: delivered. */
  answer: (n: number) => Outcome | undefined;
  readonly delivered: number[];
}

export interface Scene {
  readonly prefix: string;
  readonly schema: string;
  readonly receiver: Receiver;
  /** One more process on the same stores, as far as one process can show that. */
  open(more?: Partial<MakegoodOptions>, url?: string): Promise<Makegood & { readonly recovery: Recovery }>;
  close(): Promise<void>;
}

export const TOPIC = "shop/order";

export async function scene(): Promise<Scene> {
  const { url } = await redis();
  const [prefix, schema] = [freshPrefix(), freshSchema()];
  const opened: Makegood[] = [];
  const receiver: Receiver = { answer: () => undefined, delivered: [] };
  const order = topic(TOPIC, {
    retry: { policy: "exponential", attemptsMax: 2, baseMs: 10, maxMs: 20 },
    sink: async (payload: unknown) => {
      const { n } = payload as { n: number };
      const answer = receiver.answer(n);
      if (answer === undefined) receiver.delivered.push(n);
      return answer;
    },
  });
  return {
    prefix,
    schema,
    receiver,
    async open(more = {}, home = databaseUrl()) {
      const store = createRedisStore({ redis: url, prefix });
      const recoveryHome = createPostgresStore({ url: home, schema, poolMax: 6 });
      const mg = await createMakegood({ store, recoveryHome, topics: [order], pollMs: 100, log: "silent", ...more });
      opened.push(mg);
      return mg as Makegood & { readonly recovery: Recovery };
    },
    async close() {
      await Promise.all(opened.map((mg) => mg.close({ drainMs: 200 })));
      await dropSchema(schema);
    },
  };
}

export const refuse = (code: string, error: string): Outcome => ({ kind: "reject", code, error });

/** Accepts so many, numbered from `from`. */
export async function send(mg: Makegood, count: number, from = 0): Promise<string[]> {
  const ids: string[] = [];
  for (let n = from; n < from + count; n++) ids.push((await mg.enqueue(TOPIC, { n }, { key: `order-${n}` })).id);
  return ids;
}

/** The evaluated candidate of the group with this code and so many open messages. */
export async function suggested(recovery: Recovery, errorCode: string, open: number): Promise<Candidate> {
  return vi.waitFor(async () => {
    const { data } = await recovery.groups({ errorCode, open: true, limit: 10 });
    expect(data.map(({ openMessages }) => openMessages)).toEqual([open]);
    const found = await recovery.group(data[0]?.groupId as number);
    expect(found.candidate?.evaluationStatus).toBe("evaluated");
    return found.candidate as Candidate;
  }, PATIENCE);
}

export async function ended(recovery: Recovery, candidateId: number, status: string): Promise<void> {
  await vi.waitFor(async () => {
    const { candidate } = await recovery.candidate(candidateId);
    expect(candidate.executionStatus, JSON.stringify(candidate.executionResult)).toBe(status);
  }, PATIENCE);
}

export const inPrimary = async (mg: Makegood, ids: readonly string[]): Promise<MessageView[]> =>
  (await Promise.all(ids.map((id) => mg.store.get(id)))) as MessageView[];
