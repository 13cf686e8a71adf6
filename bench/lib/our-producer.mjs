// How Makegood's messages are made, on whichever store: half of them carry a key, four tenants.
import { randomBytes } from "node:crypto";

const tenants = ["north", "east", "south", "west"];

export function ourProducer({ makegood, messages }) {
  // Another producer's keys are other keys: what is delivered is still remembered.
  const run = randomBytes(4).toString("hex");
  const fields = ({ seq }) => ({
    tenantId: tenants[seq % tenants.length],
    key: (seq >> 2) % 2 === 0 ? `order-${run}-${seq}` : undefined,
  });
  return {
    one: (payload) => makegood.enqueue(messages, payload, fields(payload)),
    many: (payloads) =>
      makegood.enqueueMany(
        messages,
        payloads.map((payload) => ({ payload, ...fields(payload) })),
      ),
    inTransaction: (client, payload) => makegood.enqueue(messages, payload, { tx: client, ...fields(payload) }),
    close: () => makegood.close(),
  };
}
