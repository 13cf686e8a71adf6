/**
 * deliver(): tries the sink at once and, where that fails, hands the message down to the first store that takes it. It never
 * throws, it promises nothing until it returns, and its result says what happened and how durable the message is now.
 */

import { errorText } from "../message/errors.ts";
import type { TopicName } from "../message/topic.ts";
import type { MessageFields } from "../message/validate.ts";
import { UnderWay } from "../platform/under-way.ts";
import type { AnyTopic, TopicFor } from "../topic/topic.ts";
import { codeOf, type DeliverDeps, DirectDelivery, textOf } from "./direct-delivery.ts";

export interface DeliverOptions extends MessageFields {
  /** How long the first try at the sink may take; the topic's own attempt timeout where that is shorter or nothing is said. */
  readonly timeoutMs?: number | undefined;
  /** How long the whole call may take, every rung included; `timeoutMs` + 1,500 unless said. */
  readonly budgetMs?: number | undefined;
  /** True: the message is kept first, in the first store that takes it, and the direct try is its first attempt there. */
  readonly storeFirst?: boolean | undefined;
  /** True: the direct try keeps to no rate and total of the topic, which are there to hold back what waits, not what is asked for now. */
  readonly unpaced?: boolean | undefined;
  /** The exact text to send and store, instead of printing `payload` again (I8); `payload` is then ignored. */
  readonly payloadText?: string | undefined;
  /** Ends the direct try; the message is stored all the same. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * delivered: the sink took it. duplicate: it was there already. queued: stored, workers go on. dead: rejected for good, and kept as a
 * dead letter. refused: it cannot be a message, or it contradicts one that has its key; its whole text went to the ERROR log.
 */
export interface DeliverResult {
  readonly kind: "delivered" | "duplicate" | "queued" | "dead" | "refused";
  readonly id: string;
  /** The effect's identity: the key that was given, else the id. */
  readonly key: string;
  /** Why it was not delivered at once; null when it was. */
  readonly code: string | null;
  readonly error: string | null;
  /** The receiver's HTTP status, where there was one and the sink told it. */
  readonly status: number | null;
  /** Where the message is now; null: nowhere, because it was delivered or refused. */
  readonly stored: "primary" | "secondary" | "journal" | "memory" | null;
  /** What the stored message survives; `nothing` where nothing is stored. */
  readonly survives: "power-loss" | "process-crash" | "nothing";
  /** How often the sink was tried. */
  readonly tries: number;
  /** What the receiver answered, where the sink told it. */
  readonly body?: string | null;
}

export type Deliver = <In = unknown>(
  topic: TopicFor<In> | TopicName,
  payload: NoInfer<In>,
  options?: DeliverOptions,
) => Promise<DeliverResult>;

export function createDeliver(deps: DeliverDeps): { readonly deliver: Deliver; close(): Promise<void> } {
  const underWay = new UnderWay();
  let closed = false;
  const delivery = new DirectDelivery(deps);
  const deliver = (topic: AnyTopic | string, payload: unknown, given?: DeliverOptions | null): Promise<DeliverResult> => {
    // A caller in plain JavaScript may give null: no reason to throw.
    const options = given ?? {};
    const work = closed
      ? Promise.resolve(
          delivery.refuse(
            topic,
            options.payloadText ?? textOf(payload),
            options,
            "closed",
            "this Makegood was closed and accepts nothing more",
          ),
        )
      : delivery
          .run(topic, payload, options)
          // A promise that never throws is kept even by our own mistakes.
          .catch((error) =>
            delivery.refuse(topic, options.payloadText ?? textOf(payload), options, codeOf(error), errorText(error)),
          );
    underWay.add(work);
    return work;
  };
  return {
    deliver,
    async close() {
      closed = true;
      await underWay.over();
    },
  };
}
