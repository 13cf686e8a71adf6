export interface Io {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly cwd: string;
    /** Whether a person is reading. */
    readonly tty: boolean;
    readonly color: boolean;
    out(text: string): void;
    err(text: string): void;
    /** Everything on standard input; null when a person would have to type it. */
    stdin(): Promise<Buffer | null>;
}
export declare function processIo(): Io;
/** Lines for people. */
export declare function say(io: Io, ...lines: string[]): void;
export declare function complain(io: Io, ...lines: string[]): void;
/** JSON text: as it is for a program; harmless, and still the same JSON, on a terminal. */
export declare function printJson(io: Io, text: string): void;
/** Columns as wide as what stands in them; the last one as long as it likes. */
export declare function table(io: Io, heads: readonly string[], rows: readonly (readonly string[])[]): void;
/** The text that an option, a file or standard input holds; a string says what is wrong. */
export declare function readInput(io: Io, file: string | undefined): Promise<{
    text: string;
} | {
    fault: string;
}>;
