/**
 * The usage preset on the run's PostgreSQL, in a schema of its own: a Makegood, the preset, and turns to play with.
 */
import { createMakegood, type Makegood } from "../../src/index.ts";
import { createIds } from "../../src/platform/ids.ts";
import {
  createUsage,
  createUsagePublishers,
  type PublishContext,
  type ReserveInput,
  type Usage,
  type UsagePublishers,
  type UsageSnapshot,
  usageTopic,
} from "../../src/presets/index.ts";
import { createPostgresStore, createPostgresUsageStore } from "../../src/store/postgres/index.ts";
import type { Turn } from "../../src/store/usage.ts";
import { databaseUrl, dropSchema, freshSchema } from "../support/postgres.ts";

export const uuid = createIds();

export interface UsageStage extends AsyncDisposable {
  readonly schema: string;
  readonly mg: Makegood;
  readonly usage: Usage;
  readonly publishers: UsagePublishers;
  /** What the publisher `ledger` was given, in order. */
  readonly published: { snapshot: UsageSnapshot; context: PublishContext }[];
  readonly tenantId: string;
  readonly userId: string;
  input(fields?: Partial<ReserveInput>): ReserveInput;
  running(fields?: Partial<ReserveInput>): Promise<Turn>;
  /** Payloads of all messages, oldest first. */
  payloads(): Promise<UsageSnapshot[]>;
  sums(): Promise<[bigint, bigint]>;
}

export interface StageOptions {
  readonly counters?: readonly string[];
  readonly leaseMs?: number;
  readonly attemptsMax?: number;
  /** Another way to the same database for the preset's own connections. */
  readonly via?: (url: string) => string;
}

export async function usageStage({
  counters,
  leaseMs,
  attemptsMax = 3,
  via = (url) => url,
}: StageOptions = {}): Promise<UsageStage> {
  const schema = freshSchema();
  const url = databaseUrl();
  const published: UsageStage["published"] = [];
  const publishers = createUsagePublishers({
    ledger: { publishUsage: (snapshot, context) => void published.push({ snapshot, context }) },
  });
  const topic = usageTopic({
    publishers,
    counters,
    leaseMs,
    timeoutMs: 500,
    retry: { policy: "usage", attemptsMax, baseMs: 50 },
  });
  const store = createPostgresStore({ url, schema });
  const mg = await createMakegood({ store, topics: [topic], pollMs: 50 });
  const usage = await createUsage({
    mg,
    store: createPostgresUsageStore({ url: via(url), schema, queryTimeoutMs: 2_000 }),
    topic,
  });
  const [tenantId, userId] = [uuid(), uuid()];
  const input = (fields: Partial<ReserveInput> = {}): ReserveInput => ({
    tenantId,
    userId,
    turnId: uuid(),
    requestId: uuid(),
    chatId: uuid(),
    policyVersion: "2026-11.3",
    model: "house-large",
    period: "2026-11",
    estimatedInputTokens: 1_000,
    outputTokensMax: 2_000,
    generationFloorTokens: 50,
    inputRate: 3_000,
    outputRate: 15_000,
    buckets: [{ name: "total", limitCredits: 1_000_000 }, { name: "tier:premium" }],
    ...fields,
  });
  return {
    schema,
    mg,
    usage,
    publishers,
    published,
    tenantId,
    userId,
    input,
    async running(fields) {
      const result = await usage.reserve(input(fields));
      if (result.kind !== "reserved") throw new Error(`not reserved: ${result.kind}`);
      return result.turn;
    },
    async payloads() {
      const { data } = await store.list({ limit: 1_000 });
      return data.reverse().map(({ payload }) => JSON.parse(payload) as UsageSnapshot);
    },
    async sums() {
      const row = (await usage.quota({ tenantId, userId, period: "2026-11" })).find(({ bucket }) => bucket === "total");
      return [row?.reservedCredits ?? 0n, row?.spentCredits ?? 0n];
    },
    async [Symbol.asyncDispose]() {
      await usage.close();
      await mg.close({ drainMs: 0 });
      await dropSchema(schema);
    },
  };
}

export const minutes = (n: number): { readonly now: Date } => ({ now: new Date(Date.now() + n * 60_000) });
