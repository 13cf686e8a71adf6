/**
 * Reads a request body within its limits: JSON only, no compression, no more bytes than allowed however
 * they arrive, and valid UTF-8. What comes back is text that a scanner may trust to be characters.
 */

import { type ApiRequest, type Parsed, parsed, refused } from "./http.ts";
import { problem } from "./problem.ts";

const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*)?;?[ \t]*$/i;

/** The text of a JSON body. `optional`: no body and no content type is allowed and comes back as an empty text. */
export async function readText(request: ApiRequest, bytesMax: number, optional = false): Promise<Parsed<string>> {
  const type = request.header("content-type");
  const lengthHeader = request.header("content-length");
  const empty = lengthHeader === "0" || (lengthHeader === null && request.header("transfer-encoding") === null);
  if (optional && empty && type === null) return parsed("");
  if (type === null || !JSON_TYPE.test(type)) {
    return refused(problem("unsupported_media_type", "the content type must be application/json (in UTF-8)"));
  }
  const encoding = request.header("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity") {
    return refused(problem("unsupported_media_type", "a compressed body is not accepted: send it without content-encoding"));
  }
  const bytes = await readBytes(request, lengthHeader, bytesMax);
  if (!bytes.ok) return bytes;
  return decode(bytes.value);
}

function tooLarge<T>(bytesMax: number): Parsed<T> {
  // The rest of the body is not wanted: the connection ends with this answer.
  const headers = { connection: "close" };
  return refused(
    problem("body_too_large", `the request body may have at most ${bytesMax} bytes`, { headers, members: { limit: bytesMax } }),
  );
}

async function readBytes(request: ApiRequest, lengthHeader: string | null, bytesMax: number): Promise<Parsed<Uint8Array>> {
  try {
    if (lengthHeader !== null) {
      // Node's parser holds the sender to this number, so nothing beyond it can arrive.
      if (Number(lengthHeader) > bytesMax) return tooLarge(bytesMax);
      return parsed(await request.bytes());
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    const reader = request.body?.getReader();
    for (;;) {
      const next = await reader?.read();
      if (!next || next.done) break;
      size += next.value.byteLength;
      if (size > bytesMax) {
        reader?.cancel().catch(() => {});
        return tooLarge(bytesMax);
      }
      chunks.push(next.value);
    }
    return parsed(Buffer.concat(chunks));
  } catch {
    return refused(problem("invalid_request", "the connection ended before the whole body had arrived"));
  }
}

function decode(bytes: Uint8Array): Parsed<string> {
  try {
    // ignoreBOM keeps a byte order mark visible, so that the scanner refuses it instead of dropping a byte sequence unseen.
    return parsed(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return refused(problem("invalid_request", "the body is not valid UTF-8"));
  }
}
