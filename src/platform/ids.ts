/**
 * UUID version 7: the time in front, so that ids sort by when they were made and choose their day's partition. In one process
 * they only rise, also inside one millisecond. They order nothing that matters: the order of an ordering key is the store's.
 */
import { type Clock, systemClock } from "./clock.ts";
import { type Random, systemRandom } from "./random.ts";

const HEX: readonly string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0"));
const HEX_DIGITS = "0123456789abcdef";

/** A maker of rising ids. Random bits are drawn for many ids at once: one system call for each would cost more than the id. */
export function createIds(clock: Clock = systemClock, random: Random = systemRandom): () => string {
  let lastMs = -1;
  let counter = 0;
  let pool: Uint8Array = new Uint8Array(0);
  let used = 0;
  /** The time as it stands in front of an id, made once for all ids of a millisecond. */
  let front = "";

  function startMs(ms: number): void {
    lastMs = ms;
    counter = 0;
    const time = ms.toString(16).padStart(12, "0");
    front = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  }

  return function nextId(): string {
    const wall = clock.wallMs();
    if (wall > lastMs) startMs(wall);
    // 12 bits of counter a millisecond; past that, borrow from the next one rather than repeat or fall back.
    else if (++counter > 0xfff) startMs(lastMs + 1);
    if (used + 8 > pool.length) {
      pool = random.bytes(2_048);
      used = 0;
    }
    const seq = `${HEX_DIGITS[counter >> 8]}${HEX[counter & 0xff]}`;
    const byte = (i: number) => HEX[pool[used + i] as number] as string;
    const variant = HEX[((pool[used] as number) & 0x3f) | 0x80] as string;
    const id = `${front}${seq}-${variant}${byte(1)}-${byte(2)}${byte(3)}${byte(4)}${byte(5)}${byte(6)}${byte(7)}`;
    used += 8;
    return id;
  };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** The first id of a millisecond: bounds of a day's partition. */
export function idFloor(ms: number): string {
  const time = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

let lastFront = "";
let lastFrontMs = 0;

/** When an id was made, by its maker's clock. Those of a batch share their front, so the last one is remembered. */
export function idTimeMs(id: string): number {
  const front = id.slice(0, 13);
  if (front !== lastFront) {
    lastFrontMs = Number.parseInt(front.slice(0, 8) + front.slice(9), 16);
    lastFront = front;
  }
  return lastFrontMs;
}
