// The message every peer carries: about 300 bytes of JSON, with a sequence number that shows losses and doubles.

const note = "leave it at the front desk and ring twice, thank you";

/** `at` is the moment of the enqueue call where latency is asked for, else 0. */
export function payload(seq, at = 0) {
  return {
    seq,
    at,
    kind: "order.created",
    orderId: `ord_${seq}`,
    customer: "cust_8f14e45fceea167a",
    currency: "EUR",
    amount: 12345,
    lines: [
      { sku: "SKU-000123", quantity: 2, price: 4500 },
      { sku: "SKU-000456", quantity: 1, price: 3345 },
    ],
    note,
  };
}

export const payloadBytes = Buffer.byteLength(JSON.stringify(payload(12345)));
