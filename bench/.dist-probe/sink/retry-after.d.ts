/**
 * Reads a Retry-After header: seconds or an HTTP date, as milliseconds from now, never negative. What makes no sense is
 * ignored; what is too long is clamped by decide(), not here.
 */
export declare function retryAfterMs(text: string | null, wallMs: number): number | undefined;
