/**
 * A payload on the command line: an option, a file or standard input. Its text goes through unchanged (I8).
 */
import { errorText } from "../message/errors.ts";
import { checkJson } from "../message/json-scanner.ts";
import { Stop } from "./exit-code.ts";
import { type Io, readInput } from "./io.ts";

export const PAYLOAD_OPTIONS = {
  "--payload <json>": "the payload, as JSON",
  "--file <path>": "a file that holds the payload; - is standard input (the default)",
};

/** The body of a request: the fields, and the payload as it is. It must be one value and nothing else before it is spliced in. */
export async function payloadBody(io: Io, fields: object, options: Readonly<Record<string, unknown>>): Promise<string> {
  const { payload, file } = options as { readonly payload?: string; readonly file?: string };
  if (payload !== undefined && file !== undefined) throw new Stop("give either --payload or --file");
  const text = (payload ?? (await readInput(io, file, "payload"))).trim();
  try {
    checkJson(text, "invalid_payload");
  } catch (error) {
    throw new Stop(`the payload is ${errorText(error)}`);
  }
  const members = JSON.stringify(fields);
  return `${members.slice(0, -1)}${members === "{}" ? "" : ","}"payload":${text}}`;
}
