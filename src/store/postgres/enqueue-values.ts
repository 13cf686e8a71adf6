/**
 * The parameters of the enqueue statements, in the order that statements/enqueue.ts documents: text only, so that every
 * driver and ORM passes them on unchanged.
 */
import type { Placed } from "./enqueue.ts";
import { KIND_ORDERED } from "./lane-table.ts";
import { type Parts, SEPARATOR } from "./statements/enqueue.ts";

const numberText = (value: number | null): string | null => (value === null ? null : String(value));

export function shortValues({ message, lane }: Placed): unknown[] {
  const values: unknown[] = [
    message.id,
    String(lane.id),
    message.payload,
    String(message.delayMs),
    message.traceparent,
    numberText(message.schemaVersion),
  ];
  if (message.key !== null) values.push(String(lane.topicId), lane.tenant, message.key, message.payloadHash);
  return values;
}

export interface BatchKind {
  readonly old: boolean;
  readonly repeat: boolean;
}

export function batchValues(placed: readonly Placed[], { old, repeat }: BatchKind): { parts: Parts; values: unknown[] } {
  const has = (pick: (p: Placed) => unknown) => placed.some((p) => pick(p) !== null && pick(p) !== undefined);
  const ordering = (p: Placed) => (p.lane.kind === KIND_ORDERED ? p.message.orderingKey : null);
  const free = (p: Placed) => [
    p.message.key,
    ordering(p),
    p.message.traceparent,
    p.message.directTry?.code,
    p.message.directTry?.error,
  ];
  const parts: Parts = {
    keyed: has((p) => p.message.key),
    delayed: placed.some((p) => p.message.delayMs > 0),
    repeat,
    ordered: has(ordering),
    traced: has((p) => p.message.traceparent),
    versioned: has((p) => p.message.schemaVersion),
    handedDown: has((p) => p.message.directTry),
    old,
    json: placed.some((p) => free(p).some((text) => text?.includes(SEPARATOR))),
  };
  const list = (pick: (p: Placed) => string | number | null) => `{${placed.map((p) => pick(p) ?? "NULL").join(",")}}`;
  const text = (pick: (p: Placed) => string | null | undefined) => {
    const all = placed.map((p) => pick(p) ?? "");
    return parts.json ? JSON.stringify(all) : all.join(SEPARATOR);
  };
  const values: unknown[] = [
    list((p) => p.message.id),
    list((p) => p.lane.id),
    placed.map((p) => p.message.payload).join(SEPARATOR),
  ];
  if (parts.delayed) values.push(list((p) => p.message.delayMs));
  if (parts.keyed)
    values.push(
      text((p) => p.message.key),
      list((p) => (p.message.key === null ? null : p.message.payloadHash)),
    );
  if (parts.ordered) values.push(text(ordering));
  if (parts.traced) values.push(text((p) => p.message.traceparent));
  if (parts.versioned) values.push(list((p) => p.message.schemaVersion));
  if (parts.handedDown) {
    values.push(
      text((p) => p.message.directTry && (p.message.directTry.code ?? "direct")),
      text((p) => p.message.directTry?.error),
    );
  }
  return { parts, values };
}
