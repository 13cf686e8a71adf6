/**
 * The parameters of the enqueue statements, in the order that statements/enqueue.ts documents: text only, so that every
 * driver and ORM passes them on unchanged.
 */
import type { Placed } from "./insert-placed.ts";
import { KIND_ORDERED } from "./lane-table.ts";
import { type Parts, SEPARATOR } from "./statements/enqueue.ts";

const numberText = (value: number | null): string | null => (value === null ? null : String(value));

export function shortValues({ message, lane }: Placed, installation: string, told: string): unknown[] {
  const values: unknown[] = [
    message.id,
    String(lane.id),
    message.payload,
    String(message.delayMs),
    message.traceparent,
    numberText(message.schemaVersion),
    installation,
    told,
  ];
  if (message.key !== null) values.push(String(lane.topicId), lane.tenant, message.key, message.payloadHash);
  return values;
}

export interface BatchKind {
  readonly old: boolean;
  readonly repeat: boolean;
  /** Whose lane numbers these are. */
  readonly installation: string;
  /** The lanes were just made or seen: they need not be asked for. */
  readonly lanesSeen: boolean;
  /** The workers that hear of it without the server, as an array literal. */
  readonly told: string;
}

/** Each lane once, as an array literal. */
export const laneList = (placed: readonly Placed[]): string => `{${[...new Set(placed.map((p) => p.lane.id))].join(",")}}`;

export function batchValues(
  placed: readonly Placed[],
  { old, repeat, installation, lanesSeen, told }: BatchKind,
): { parts: Parts; values: unknown[] } {
  const has = (pick: (p: Placed) => unknown) => placed.some((p) => pick(p) !== null && pick(p) !== undefined);
  const ordering = (p: Placed) => (p.lane.kind === KIND_ORDERED ? p.message.orderingKey : null);
  const parts: Parts = {
    keyed: has((p) => p.message.key),
    delayed: placed.some((p) => p.message.delayMs > 0),
    repeat,
    ordered: has(ordering),
    traced: has((p) => p.message.traceparent),
    versioned: has((p) => p.message.schemaVersion),
    handedDown: has((p) => p.message.directTry),
    rejected: placed.some((p) => p.message.directTry?.rejected),
    old,
    json: placed.some(holdsSeparator),
    lanesSeen,
  };
  const list = (pick: (p: Placed) => string | number | null, from = placed) =>
    `{${from.map((p) => pick(p) ?? "NULL").join(",")}}`;
  const text = (pick: (p: Placed) => string | null | undefined, from = placed) => {
    const all = from.map((p) => pick(p) ?? "");
    return parts.json ? JSON.stringify(all) : all.join(SEPARATOR);
  };
  const values: unknown[] = [
    list((p) => p.message.id),
    list((p) => p.lane.id),
    placed.map((p) => p.message.payload).join(SEPARATOR),
  ];
  if (parts.delayed) values.push(list((p) => p.message.delayMs));
  if (parts.keyed) values.push(text((p) => p.message.key));
  if (parts.ordered) values.push(text(ordering));
  if (parts.traced) values.push(text((p) => p.message.traceparent));
  if (parts.versioned) values.push(list((p) => p.message.schemaVersion));
  if (parts.handedDown) {
    values.push(
      text((p) => p.message.directTry && (p.message.directTry.code ?? "direct")),
      text((p) => p.message.directTry?.error),
    );
  }
  if (parts.rejected) values.push(list((p) => String(p.message.directTry?.rejected ?? false)));
  if (parts.keyed) {
    const keyed = placed.filter((p) => p.message.key !== null).sort(byKey);
    values.push(
      list((p) => p.lane.topicId, keyed),
      text((p) => p.lane.tenant, keyed),
      text((p) => p.message.key, keyed),
      list((p) => p.message.id, keyed),
      list((p) => p.message.payloadHash, keyed),
    );
  }
  values.push(installation, lanesSeen ? "{}" : laneList(placed), told);
  return { parts, values };
}

/** In any of its free texts. */
function holdsSeparator({ message: { key, orderingKey, traceparent, directTry } }: Placed): boolean {
  if (key?.includes(SEPARATOR) || orderingKey?.includes(SEPARATOR) || traceparent?.includes(SEPARATOR)) return true;
  return directTry !== undefined && [directTry.code, directTry.error].some((text) => text?.includes(SEPARATOR));
}

/** Any order will do if all writers use it: writers of the same keys then wait for each other in one direction only. */
function byKey(a: Placed, b: Placed): number {
  if (a.lane.topicId !== b.lane.topicId) return a.lane.topicId - b.lane.topicId;
  if (a.lane.tenant !== b.lane.tenant) return a.lane.tenant < b.lane.tenant ? -1 : 1;
  const [x, y] = [a.message.key as string, b.message.key as string];
  return x < y ? -1 : x > y ? 1 : 0;
}
