/**
 * How anything that goes wrong with the embedded server is told: one MakegoodError with the code `embedded_failed`, and the
 * system's own word for the cause (EACCES, ENOENT, …) where the remedy depends on it.
 */
import { MakegoodError } from "../../../message/errors.ts";

export function embeddedFailed(message: string, detail: Record<string, unknown> = {}, cause?: unknown): MakegoodError {
  return new MakegoodError("embedded_failed", message, detail, cause);
}

/** The errno of a failed system call, or the SQLSTATE of a failed query. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Lets a call that fails for one of the named reasons answer `undefined`; every other failure stays one. */
export async function unless<T>(codes: readonly string[], call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (codes.includes(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** Whether the call succeeded; failures other than the named ones stay failures. */
export async function succeeds(codes: readonly string[], call: Promise<unknown>): Promise<boolean> {
  const done = call.then(() => true);
  return (await unless(codes, done)) ?? false;
}
