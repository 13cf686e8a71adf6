/**
 * Reads a request body within its limits: JSON only, no compression, no more bytes than allowed however they arrive,
 * and valid UTF-8. What comes back is text that a scanner may trust to be characters.
 */
import { type ApiRequest, type Parsed } from "./http.ts";
/** A batch of a thousand messages fits; a body beyond it is refused before it is read. */
export declare const BODY_BYTES_MAX: number;
/** The text of a JSON body. `optional`: no body and no content type is allowed and comes back as an empty text. */
export declare function readText(request: ApiRequest, bytesMax: number, optional?: boolean): Promise<Parsed<string>>;
