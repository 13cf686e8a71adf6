/**
 * The journal's file format: a header that stands twice, then framed records with length, sequence and checksum. Reading never throws:
 * a corrupt record is skipped and named with its offset, and what nothing valid follows is the torn tail.
 */
import { crc32 } from "node:zlib";

export const RECORD = { entry: 1, done: 2, quarantined: 3, tried: 4 } as const;
const TYPES: ReadonlySet<number> = new Set(Object.values(RECORD));
export type RecordType = (typeof RECORD)[keyof typeof RECORD];

export interface JournalRecord {
  readonly seq: number;
  readonly type: RecordType;
  readonly body: Buffer;
  readonly offset: number;
  readonly bytes: number;
}

export interface Damage {
  readonly kind: "torn_tail" | "corrupt_record";
  readonly offset: number;
  readonly bytes: number;
}

export interface SegmentRead {
  /** Null: no header can be read, and so nothing else. */
  readonly salt: number | null;
  readonly records: JournalRecord[];
  readonly damage: Damage[];
  /** Where the next record belongs: the end of the last valid one. */
  readonly end: number;
}

const FILE_MAGIC = Buffer.from("MGJRNL01");
const COPY_BYTES = 16;
export const HEADER_BYTES = 2 * COPY_BYTES;
const RECORD_MAGIC = Buffer.from([0xc7, 0x4d, 0x47, 0x52]);
/** magic 4, length 4, checksum 4, sequence 8, type 1 */
const FRAME_BYTES = 21;
const BODY_BYTES_MAX = 64 * 1_048_576;

export function headerBytes(salt: number): Buffer {
  const copy = Buffer.alloc(COPY_BYTES);
  FILE_MAGIC.copy(copy);
  copy.writeUInt32LE(salt, 8);
  copy.writeUInt32LE(crc32(copy.subarray(0, 12)), 12);
  return Buffer.concat([copy, copy]);
}

export function recordBytes(salt: number, seq: number, type: RecordType, body: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_BYTES + body.length);
  RECORD_MAGIC.copy(bytes);
  bytes.writeUInt32LE(body.length, 4);
  bytes.writeBigUInt64LE(BigInt(seq), 12);
  bytes.writeUInt8(type, 20);
  body.copy(bytes, FRAME_BYTES);
  bytes.writeUInt32LE(checksum(bytes, 0, salt), 8);
  return bytes;
}

/**
 * Over everything but itself, beginning from the file's own random salt: a payload that imitates a record is not taken for one when the
 * record around it is damaged.
 */
function checksum(bytes: Buffer, at: number, salt: number): number {
  const length = bytes.readUInt32LE(at + 4);
  return crc32(bytes.subarray(at + 12, at + FRAME_BYTES + length), crc32(bytes.subarray(at + 4, at + 8), salt));
}

export function readSegment(bytes: Buffer): SegmentRead {
  const salt = readSalt(bytes, 0) ?? readSalt(bytes, COPY_BYTES);
  if (salt === null) {
    return { salt, records: [], damage: [{ kind: "torn_tail", offset: 0, bytes: bytes.length }], end: 0 };
  }
  const records: JournalRecord[] = [];
  const damage: Damage[] = [];
  let end = HEADER_BYTES;
  while (end < bytes.length) {
    const record = recordAt(bytes, end, salt) ?? nextRecord(bytes, end + 1, salt);
    if (record === null) {
      damage.push({ kind: "torn_tail", offset: end, bytes: bytes.length - end });
      break;
    }
    if (record.offset > end) damage.push({ kind: "corrupt_record", offset: end, bytes: record.offset - end });
    records.push(record);
    end = record.offset + record.bytes;
  }
  return { salt, records, damage, end };
}

function readSalt(bytes: Buffer, at: number): number | null {
  if (bytes.length < at + COPY_BYTES || !bytes.subarray(at, at + 8).equals(FILE_MAGIC)) return null;
  return crc32(bytes.subarray(at, at + 12)) === bytes.readUInt32LE(at + 12) ? bytes.readUInt32LE(at + 8) : null;
}

function recordAt(bytes: Buffer, at: number, salt: number): JournalRecord | null {
  if (bytes.length < at + FRAME_BYTES || bytes.compare(RECORD_MAGIC, 0, 4, at, at + 4) !== 0) return null;
  const length = bytes.readUInt32LE(at + 4);
  if (length > BODY_BYTES_MAX || at + FRAME_BYTES + length > bytes.length) return null;
  if (checksum(bytes, at, salt) !== bytes.readUInt32LE(at + 8)) return null;
  const type = bytes.readUInt8(at + 20);
  if (!TYPES.has(type)) return null;
  const body = bytes.subarray(at + FRAME_BYTES, at + FRAME_BYTES + length);
  return { seq: Number(bytes.readBigUInt64LE(at + 12)), type: type as RecordType, body, offset: at, bytes: FRAME_BYTES + length };
}

function nextRecord(bytes: Buffer, from: number, salt: number): JournalRecord | null {
  for (let at = bytes.indexOf(RECORD_MAGIC, from); at !== -1; at = bytes.indexOf(RECORD_MAGIC, at + 1)) {
    const record = recordAt(bytes, at, salt);
    if (record) return record;
  }
  return null;
}
