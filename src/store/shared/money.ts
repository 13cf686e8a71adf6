/**
 * The amount that a payload names, as the text that is written in it: read as a number it would be rounded.
 */
import { cursorOn, eachMember, takeValue } from "../../message/json-scanner.ts";

/** As PostgreSQL's `money_of`. */
const AMOUNT = /^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?$/;

function memberOf(text: string, name: string): string {
  const cursor = cursorOn(text, "invalid_payload");
  let found = "";
  eachMember(cursor, (key) => {
    const value = takeValue(cursor);
    if (key === name) found = value;
  });
  return found;
}

/** Empty: there is none under these names, which dots join. */
export function moneyOf(payload: string, field: string): string {
  try {
    const found = field.split(".").reduce(memberOf, payload);
    const text = /^"[^"\\]*"$/.test(found) ? found.slice(1, -1) : found;
    return AMOUNT.test(text) ? text : "";
  } catch {
    return "";
  }
}
