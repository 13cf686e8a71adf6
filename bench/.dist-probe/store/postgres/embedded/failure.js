/**
 * How anything that goes wrong with the embedded server is told: one MakegoodError with the code `embedded_failed`, and the
 * system's own word for the cause (EACCES, ENOENT, …) where the remedy depends on it.
 */
import { MakegoodError } from "../../../message/errors.js";
export function embeddedFailed(message, detail = {}, cause) {
    return new MakegoodError("embedded_failed", message, detail, cause);
}
/** The errno of a failed system call, or the SQLSTATE of a failed query. */
export function codeOf(error) {
    const code = error?.code;
    return typeof code === "string" ? code : undefined;
}
/** Lets a call that fails for one of the named reasons answer `undefined`; every other failure stays one. */
export async function unless(codes, call) {
    try {
        return await call;
    }
    catch (error) {
        if (codes.includes(codeOf(error) ?? ""))
            return undefined;
        throw error;
    }
}
//# sourceMappingURL=failure.js.map