/**
 * Text of others made safe to keep: one line, no control or direction-changing characters, bounded in bytes. An attempt's
 * error column, a log and a terminal all show it, so what a receiver answered must not be able to act there.
 */
export declare function oneLine(text: string, bytesMax: number): string;
/** The longest start of `text` that fits, never half a character. */
export declare function cutToBytes(text: string, bytesMax: number): string;
