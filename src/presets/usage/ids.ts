/**
 * The ids of a turn and the key of its message. Every part is a UUID written as 32 lower-case hex digits, so that one turn has one
 * spelling and the parts of a key cannot run into each other (DO-15).
 */
import { MakegoodError } from "../../message/errors.ts";

const SPELLINGS = /^[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}$/;
const NIL = /^0+$/;

/** A UUID in any usual spelling as 32 lower-case hex digits; anything else, and the nil UUID, is refused. */
export function usageId(field: string, value: unknown): string {
  const text = typeof value === "string" ? value.toLowerCase() : "";
  const id = SPELLINGS.test(text) ? text.replaceAll("-", "") : "";
  if (id !== "" && !NIL.test(id)) return id;
  throw new MakegoodError("invalid_message", `${field} must be a UUID that is not nil`, { field });
}

export interface KeyParts {
  readonly tenantId: string;
  readonly turnId: string;
  readonly requestId: string;
}

/** `{tenant_id}/{turn_id}/{request_id}` (OBX-8): the identity of the charge, for the message and for whoever receives it (OBX-26). */
export const usageKey = ({ tenantId, turnId, requestId }: KeyParts): string => `${tenantId}/${turnId}/${requestId}`;
