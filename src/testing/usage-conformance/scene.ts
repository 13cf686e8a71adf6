/**
 * What a usage store must bring to be tested, and the stage of one case: turns to reserve, a plain way to settle, messages
 * through the kernel's own store. Nothing here depends on a test runner.
 */
import assert from "node:assert/strict";
import { createIds } from "../../platform/ids.ts";
import type { Store } from "../../store/store.ts";
import type { FinalizeRequest, FinalizeResult, Reservation, Turn, TurnSettlement, UsageStore } from "../../store/usage.ts";
import { hashOf, newMessage, PLAIN, TOPICS } from "../store-conformance/fixtures.ts";
import type { OpenTransaction } from "../store-conformance/harness.ts";

export interface UsageRig {
  readonly usage: UsageStore;
  /** Where the messages go: open, empty, on the same data. */
  readonly store: Store;
  /** A second open instance on the same data, closed by the rig. */
  another?(): Promise<UsageStore>;
  transaction?(): Promise<OpenTransaction>;
  close(): Promise<void>;
}

export interface UsageHarness {
  readonly name: string;
  open(): Promise<UsageRig>;
}

export const SPENT: TurnSettlement = {
  outcome: "completed",
  method: "actual",
  inputTokens: 700,
  outputTokens: 300,
  counters: {},
  credits: 60n,
  capped: false,
  reason: null,
};
export const RELEASED: TurnSettlement = {
  ...SPENT,
  outcome: "failed",
  method: "released",
  inputTokens: 0,
  outputTokens: 0,
  credits: 0n,
  reason: "not_sent",
};

export interface UsageScene extends UsageRig {
  readonly tenantId: string;
  at(ms: number): { readonly now: Date };
  id(): string;
  /** A reservation of 100 credits from one bucket `total`, limited to 1,000. */
  reservation(fields?: Partial<Reservation>): Reservation;
  /** Reserves at `ms`, and it must succeed. */
  running(ms?: number, fields?: Partial<Reservation>): Promise<Turn>;
  finalize(turn: Turn, more?: Partial<FinalizeRequest> & FinalizeMore): Promise<FinalizeResult>;
  messages(): Promise<number>;
  /** `[reserved, spent]` of a bucket. */
  sums(bucket?: string, period?: string): Promise<[bigint, bigint]>;
}

interface FinalizeMore {
  readonly by?: UsageStore;
  readonly settlement?: TurnSettlement;
  readonly hand?: () => Promise<void>;
}

export async function playUsage(harness: UsageHarness, run: (scene: UsageScene) => Promise<void>): Promise<void> {
  const rig = await harness.open();
  try {
    for (const topic of TOPICS) await rig.store.topics.put(topic, "code");
    await run(sceneOf(rig));
    assert.deepEqual(await rig.usage.verify(), [], "quota rows and turns must add up");
  } finally {
    await rig.close();
  }
}

function sceneOf(rig: UsageRig): UsageScene {
  const start = Date.UTC(2026, 0, 1);
  const at = (ms: number) => ({ now: new Date(start + ms) });
  const ids = createIds();
  const id = () => ids().replaceAll("-", "");
  const [tenantId, userId] = [id(), id()];
  const reservation = (fields: Partial<Reservation> = {}): Reservation => ({
    tenantId,
    turnId: id(),
    requestId: id(),
    chatId: id(),
    userId,
    policyVersion: "7",
    model: "house-small",
    period: "2026-01",
    estimatedInputTokens: 1_000,
    outputTokensMax: 4_000,
    generationFloorTokens: 50,
    inputRate: 20n,
    outputRate: 20n,
    reservedCredits: 100n,
    buckets: [{ name: "total", limitCredits: 1_000n }],
    ...fields,
  });
  return {
    ...rig,
    tenantId,
    at,
    id,
    reservation,
    async running(ms = 0, fields = {}) {
      const result = await rig.usage.reserve(reservation(fields), at(ms));
      assert.equal(result.kind, "reserved");
      return (result as { turn: Turn }).turn;
    },
    finalize(turn, { by = rig.usage, settlement = SPENT, hand, ...request } = {}) {
      const { turnId, requestId } = turn;
      return by.finalize(
        { tenantId: turn.tenantId, turnId, finalizationId: id(), ...request },
        {
          settle: () => settlement,
          hand: async (final, tx) => {
            assert.deepEqual(final.settlement, settlement);
            const payload = JSON.stringify({ turnId });
            const fields = { topic: PLAIN, key: `${turnId}/${requestId}`, payload, payloadHash: hashOf(payload) };
            const [accepted] = await rig.store.enqueue([newMessage(ids(), fields)], { tx });
            await hand?.();
            return accepted?.id as string;
          },
        },
      );
    },
    async messages() {
      return (await rig.store.counts({ delivered: true })).reduce((sum, { count }) => sum + count, 0);
    },
    async sums(bucket = "total", period = "2026-01") {
      const row = (await rig.usage.quota({ tenantId, userId, period })).find((each) => each.bucket === bucket);
      return row ? [row.reservedCredits, row.spentCredits] : [0n, 0n];
    },
  };
}
