/**
 * What Redis says, in our codes. The line that matters most: a write whose answer did not come is `outcome_unknown`, never
 * "failed" (a lost reply and a lost request look the same from here), while a refusal by the server means that nothing was done.
 */
import { type ErrorCode, errorText, MakegoodError } from "../../message/errors.ts";

/** The first word of an error that the server itself answered (`OOM`, `NOSCRIPT`, …); null for anything else. */
export function replyCode(thrown: unknown): string | null {
  if (!(thrown instanceof Error) || thrown instanceof MakegoodError) return null;
  return /^-?([A-Z][A-Z]+)(?: |$)/.exec(thrown.message)?.[1] ?? null;
}

/** The server is there and cannot do it now; the same call may succeed later. */
const LATER = /^(LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|READONLY|NOREPLICAS|MISCONF|MOVED|ASK|UNBLOCKED)$/;
const DENIED = /^(NOAUTH|WRONGPASS|NOPERM)$/;

/** `wrote`: the command changes something, so that a lost answer leaves its outcome unknown. */
export function asStoreError(thrown: unknown, during: string, wrote: boolean): unknown {
  if (thrown instanceof MakegoodError) {
    if (thrown.code !== "outcome_unknown" || wrote) return thrown;
    return new MakegoodError("store_unavailable", `${during}: ${thrown.message}`, { during }, thrown);
  }
  const code = replyCode(thrown);
  if (code === null) return thrown;
  const text = errorText(thrown);
  const fail = (as: ErrorCode, message: string) =>
    new MakegoodError(as, `${during}: ${message}`, { during, reply: code }, thrown);
  if (code === "OOM") {
    return fail("store_full", `Redis has reached maxmemory (${text}); nothing was written: raise maxmemory or let workers drain`);
  }
  if (LATER.test(code)) return fail("store_unavailable", `Redis cannot do this now (${text})`);
  if (DENIED.test(code)) {
    return fail("store_unavailable", `Redis refuses this user (${text}); correct the credentials or the ACL`);
  }
  if (/^ERR Error compiling script/.test(text)) {
    return fail("invalid_config", "this server does not know scripts that begin with `#!lua`: Redis 7.0 or later is needed");
  }
  if (code === "WRONGTYPE") {
    return fail("store_unavailable", `a key of the store holds something else (${text}); nothing was written: remove that key`);
  }
  return thrown;
}
