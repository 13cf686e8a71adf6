/**
 * What the command line's exit code says. The numbers are documented in the README and do not change.
 */
export declare const EXIT: {
    readonly ok: 0;
    /** It was tried and failed. */
    readonly failed: 1;
    /** Wrong arguments or a wrong configuration: nothing was tried. */
    readonly usage: 2;
    readonly notFound: 3;
    readonly conflict: 4;
};
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
/** The exit code for an answer of the API. */
export declare function exitCodeOf(status: number, code: string): ExitCode;
