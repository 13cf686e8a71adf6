/**
 * Cuts the exact source text of a payload out of a request body (I8: the bytes that were accepted are the bytes that are
 * delivered), because JSON.parse loses big integers, duplicate keys and escapes. It validates every character against the
 * JSON grammar without recursion, so that no nesting can exhaust the stack, and stops at a stated depth.
 */
import { type ErrorCode } from "../message/errors.ts";
/** A place in a text. `code` is what a malformed text is called where it was found. */
export interface Cursor {
    readonly text: string;
    at: number;
    code: ErrorCode;
}
export declare function cursorOn(text: string, code: ErrorCode): Cursor;
/** Skips one whole value, whatever it is, and returns its exact text without the whitespace around it. */
export declare function takeValue(cursor: Cursor, depthMax?: number): string;
/** Walks one object; `onMember` must consume the value behind each key. False when the next value is not an object. */
export declare function eachMember(cursor: Cursor, onMember: (key: string) => void): boolean;
/** Walks one array; `onElement` must consume each element. False when the next value is not an array. */
export declare function eachElement(cursor: Cursor, onElement: (index: number) => void): boolean;
/** Nothing but whitespace may follow. */
export declare function expectEnd(cursor: Cursor): void;
/** Throws unless the whole text is one JSON value within the depth. */
export declare function checkJson(text: string, code: ErrorCode): void;
