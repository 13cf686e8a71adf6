/**
 * Claims until nothing is due any more, as a worker would, and says how large each batch was.
 */
import type { ClaimedMessage } from "../../src/message/message.ts";
import type { Store } from "../../src/store/store.ts";

export async function claimAll(
  store: Store,
  { limit, bytesMax }: { limit: number; bytesMax: number },
): Promise<{ batches: number[]; messages: ClaimedMessage[] }> {
  const batches: number[] = [];
  const messages: ClaimedMessage[] = [];
  for (;;) {
    const lanes = (await store.lanes()).map(({ lane }) => ({ lane, limit }));
    const got = await store.claim({ owner: "test", leaseMs: 30_000, lanes, bytesMax });
    if (got.length === 0) return { batches, messages };
    batches.push(got.length);
    messages.push(...got);
  }
}
