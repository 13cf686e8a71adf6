/**
 * The kinds of bodies: how many bytes one may have (a body beyond it is refused before it is read) and what it is called when it does not fit.
 */
import type { z } from "zod";
import type { Body } from "./route.ts";

/** What stands around a payload where a body is one payload and little else. */
const MEMBERS_BYTES = 65_536;
/**
 * A text of one mebibyte fits however it is escaped (a character of one byte is six as \u000a); how much of it counts is decided by the
 * fingerprint.
 */
export const FAILURE_PAYLOAD_BYTES = 6 * 1_048_576 + MEMBERS_BYTES;

const KINDS = {
  /** A batch of a thousand messages fits. */
  messages: { bytesMax: 16 * 1_048_576, invalid: "invalid_message" },
  topic: { bytesMax: 262_144, invalid: "invalid_topic" },
  /** A reason, and little else. */
  intervention: { bytesMax: 65_536, invalid: "invalid_message" },
  /** Enough for a redrive of ten thousand ids. */
  recovery: { bytesMax: 1_048_576, invalid: "invalid_request" },
  rule: { bytesMax: 262_144, invalid: "invalid_request" },
  failure: { bytesMax: FAILURE_PAYLOAD_BYTES + MEMBERS_BYTES, invalid: "invalid_request" },
  /** Another payload for a message; how large a payload may be is a setting. */
  edit: { bytesMax: (payloadBytesMax: number) => payloadBytesMax + MEMBERS_BYTES, invalid: "invalid_request" },
  /** An audit record is the payload itself. */
  audit: { bytesMax: (payloadBytesMax: number) => payloadBytesMax, invalid: "invalid_payload" },
} satisfies Record<string, Omit<Body, "schema">>;

export interface BodyOf<S extends z.ZodType> extends Body {
  readonly schema: S;
}

export const body = <S extends z.ZodType>(kind: keyof typeof KINDS, schema: S): BodyOf<S> => ({ schema, ...KINDS[kind] });
/** Nothing at all is the empty object. */
export const optionalBody: typeof body = (kind, schema) => ({ ...body(kind, schema), optional: true });
/** Its text is kept: a payload is in it. */
export const exactBody = <S extends z.ZodType>(kind: keyof typeof KINDS, schema: S) =>
  ({ ...body(kind, schema), exact: true }) as const;
