/** FIN-58 in numbers: the billing block of a health answer as gauges, where the store holds settlement. */
import type { Makegood } from "../../create.ts";
import { MakegoodError } from "../../message/errors.ts";
import type { Answer } from "../../observe/last-answer.ts";
import { isTrusted, type Level } from "../../observe/level-sources.ts";
import type { StatusCount } from "../../store/store.ts";
import { billingOfCounts, lookAtStore } from "./health.ts";
import { TOPIC } from "./topic.ts";

interface Known {
  readonly counts: readonly StatusCount[];
  readonly topics: readonly { readonly name: string }[];
}

/** None where the topic is not declared; throws where the counts are not known, because then nothing of this is. */
export async function settlementLevels({ store, watch }: Makegood, answer: Answer<Known>): Promise<Level[]> {
  if (!isTrusted(answer) || answer.value === undefined) throw new MakegoodError("store_unavailable", "the counts are not known");
  const { counts, topics } = answer.value;
  if (!topics.some(({ name }) => name === TOPIC)) return [];
  const up = watch.state().error === null;
  const billing = billingOfCounts(counts, store.traits, up, await lookAtStore(store));
  const { dlq_size: size, dlq_oldest_entry_age_ms: oldestMs } = billing;
  return [
    ...(size === null ? [] : [{ name: "makegood_billing_unsettled", value: size } as const]),
    ...(oldestMs === null ? [] : [{ name: "makegood_billing_oldest_seconds", value: oldestMs / 1_000 } as const]),
    { name: "makegood_billing_durable", value: Number(billing.dlq_durable) },
    { name: "makegood_billing_ready", value: Number(billing.ready_for_billing) },
    { name: "makegood_billing_unreadable", value: billing.dlq_unreadable },
  ];
}
