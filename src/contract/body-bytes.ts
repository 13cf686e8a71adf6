/**
 * How many bytes a body may have, by what is sent; a body beyond it is refused before it is read.
 */
/** What stands around a payload where a body is one payload and little else. */
const MEMBERS_BYTES = 65_536;
/**
 * A text of one mebibyte fits however it is escaped (a character of one byte is six as \u000a); how much of it counts is decided by the
 * fingerprint.
 */
const FAILURE_PAYLOAD_BYTES = 6 * 1_048_576 + MEMBERS_BYTES;

export const BODY_BYTES = {
  /** A batch of a thousand messages fits. */
  messages: 16 * 1_048_576,
  topic: 262_144,
  /** A reason, and little else. */
  intervention: 65_536,
  /** Enough for a redrive of ten thousand ids. */
  recovery: 1_048_576,
  rule: 262_144,
  failurePayload: FAILURE_PAYLOAD_BYTES,
  failure: FAILURE_PAYLOAD_BYTES + MEMBERS_BYTES,
  /** Another payload for a message; how large a payload may be is a setting. */
  edit: (payloadBytesMax: number) => payloadBytesMax + MEMBERS_BYTES,
  /** An audit record is the payload itself. */
  audit: (payloadBytesMax: number) => payloadBytesMax,
} as const;
