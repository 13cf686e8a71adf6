/**
 * Failures of our own process, kept apart from those of the receiver: no descriptor, no memory, no local port, an address that
 * its own allow-list refuses. They become `unserved`: nothing was sent, and another process may well be able to.
 */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { errorText } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { oneLine } from "../message/one-line.ts";
import type { Outcome } from "../message/outcome.ts";
import { ADDRESS_REFUSED } from "./address-guard.ts";

/** What a process has run out of, in any of its work. */
const EXHAUSTED: Readonly<Record<string, string>> = {
  EMFILE: "no_descriptor",
  ENFILE: "no_descriptor",
  ENOMEM: "out_of_memory",
  ERR_MEMORY_ALLOCATION_FAILED: "out_of_memory",
  ENOBUFS: "no_buffer",
  EADDRNOTAVAIL: "no_local_port",
};

/** What these mean only where a connection is made. */
const DIALLING: Readonly<Record<string, string>> = {
  [ADDRESS_REFUSED]: "address_refused",
  EADDRINUSE: "no_local_port",
  EPERM: "dial_forbidden",
  EACCES: "dial_forbidden",
  UND_ERR_CLOSED: "sink_closed",
  UND_ERR_DESTROYED: "sink_closed",
};

/** A resolver that finds no descriptor says that it cannot be asked, or that the name does not exist. */
const LOOKUP = /^(?:ENOTFOUND|ESERVFAIL|ENODATA|EAI_\w+)$/;
const CAUSES_MAX = 4;

/** Why a connection was not made, where that was this process; null: it was not. */
export function localDialFailure(thrown: unknown): Outcome | null {
  return unserved(thrown, (code) => {
    if (LOOKUP.test(code) && !descriptorFree()) return "no_descriptor";
    return DIALLING[code] ?? EXHAUSTED[code];
  });
}

/** The same for what a function threw: only what the process ran out of, the rest is the function's own business. */
export function localFailure(thrown: unknown): Outcome | null {
  let error = thrown;
  for (let depth = 0; depth < CAUSES_MAX && error instanceof Error; depth++) {
    const found = unserved(error, (code) => EXHAUSTED[code]);
    if (found !== null) return found;
    error = error.cause;
  }
  return null;
}

function unserved(thrown: unknown, meaning: (code: string) => string | undefined): Outcome | null {
  // A name with several addresses fails with one error for each: the receiver refused if only one of them says so.
  const errors: readonly unknown[] = thrown instanceof AggregateError && thrown.errors.length > 0 ? thrown.errors : [thrown];
  const codes = errors.map((error) => (isOutOfMemory(error) ? "out_of_memory" : meaning(codeOf(error))));
  const code = codes[0];
  if (code === undefined || codes.includes(undefined)) return null;
  return { kind: "unserved", code, error: oneLine(errorText(errors[0]), LIMITS.errorBytesMax) };
}

export function codeOf(thrown: unknown): string {
  const code = typeof thrown === "object" && thrown !== null ? (thrown as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof RangeError && /allocation failed/i.test(error.message);
}

function descriptorFree(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return true;
  } catch (error) {
    return EXHAUSTED[codeOf(error)] === undefined;
  }
}
