import type { Delivery } from "./sink.ts";
/** Names and values in turn, as undici takes them. */
export type FlatHeaders = readonly string[];
/**
 * Any text as a header value. Visible ASCII without `%` stands as it is; everything else is percent-encoded as by
 * encodeURIComponent. A `%` alone is encoded too, so that two different keys never become the same header: to a
 * receiver that would be one effect instead of two.
 */
export declare function headerText(text: string): string;
/** The configured headers with the defaults that they may override. */
export declare function fixedHeaders(configured?: Readonly<Record<string, string>>): FlatHeaders;
export declare function messageHeaders(delivery: Delivery): string[];
/** The message's own trace, or one made of its id: all attempts of a message are one trace even if nobody started it. */
export declare function traceparentOf(delivery: Pick<Delivery, "id" | "traceparent">): string;
