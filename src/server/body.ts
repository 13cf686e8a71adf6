/**
 * Reads a request body within its limits: JSON only, no compression, no more bytes than allowed however
 * they arrive, and valid UTF-8. What comes back is text that a scanner may trust to be characters.
 */
import type { ApiRequest } from "./http.ts";
import { refused } from "./problem.ts";

const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-?8"?[ \t]*)?;?[ \t]*$/i;
/** ignoreBOM keeps a byte order mark visible, so that the scanner refuses it instead of dropping a byte sequence unseen. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a JSON body. `optional`: no body and no content type is allowed and comes back as an empty text. */
export async function readText(request: ApiRequest, bytesMax: number, optional = false): Promise<string> {
  const type = request.header("content-type");
  const length = request.header("content-length");
  const empty = length === "0" || (length === null && request.header("transfer-encoding") === null);
  if (optional && empty && type === null) return "";
  if (type === null || !JSON_TYPE.test(type))
    throw refused("unsupported_media_type", "the content type must be application/json (in UTF-8)");
  const encoding = request.header("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity")
    throw refused("unsupported_media_type", "a compressed body is not accepted: send it without content-encoding");
  // A declared length is held to by Node's parser, so nothing beyond it can arrive.
  const read = Number(length) > bytesMax ? Promise.resolve(null) : request.bytes(bytesMax);
  const bytes = await read.catch(() => {
    throw refused("invalid_request", "the connection ended before the whole body had arrived");
  });
  if (bytes === null) {
    // The rest of the body is not wanted: the connection ends with this answer.
    const extra = { headers: { connection: "close" }, members: { limit: bytesMax } };
    throw refused("body_too_large", `the request body may have at most ${bytesMax} bytes`, extra);
  }
  try {
    return UTF8.decode(bytes);
  } catch {
    throw refused("invalid_request", "the body is not valid UTF-8");
  }
}
