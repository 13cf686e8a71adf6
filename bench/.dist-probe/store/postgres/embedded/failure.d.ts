/**
 * How anything that goes wrong with the embedded server is told: one MakegoodError with the code `embedded_failed`, and the
 * system's own word for the cause (EACCES, ENOENT, …) where the remedy depends on it.
 */
import { MakegoodError } from "../../../message/errors.ts";
export declare function embeddedFailed(message: string, detail?: Record<string, unknown>, cause?: unknown): MakegoodError;
/** The errno of a failed system call, or the SQLSTATE of a failed query. */
export declare function codeOf(error: unknown): string | undefined;
/** Lets a call that fails for one of the named reasons answer `undefined`; every other failure stays one. */
export declare function unless<T>(codes: readonly string[], call: Promise<T>): Promise<T | undefined>;
