/**
 * What a request without an answer means. Nothing was sent: `retry`, or `unserved` where this process could not. Bytes were
 * sent and no answer came: `unknown`, because the receiver may have acted. An answer that is not HTTP is a broken receiver,
 * like a 5xx: `retry`.
 */
import { errorText } from "../message/errors.ts";
import { LIMITS } from "../message/limits.ts";
import { oneLine } from "../message/one-line.ts";
import type { Outcome } from "../message/outcome.ts";
import { codeOf, localDialFailure } from "./local-failure.ts";

const NOT_SENT: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection_refused",
  ECONNRESET: "connection_reset",
  EPIPE: "connection_reset",
  UND_ERR_SOCKET: "connection_reset",
  ENOTFOUND: "dns",
  EAI_AGAIN: "dns",
  EAI_FAIL: "dns",
  EAI_NODATA: "dns",
  ENODATA: "dns",
  ESERVFAIL: "dns",
  ETIMEDOUT: "connect_timeout",
  UND_ERR_CONNECT_TIMEOUT: "connect_timeout",
  EPROTO: "tls",
};

const TLS = /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_MISMATCH)/;
const NOT_HTTP = /^(?:UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_)/;
const NOT_SENDABLE = /^(?:UND_ERR_INVALID_ARG|UND_ERR_NOT_SUPPORTED|UND_ERR_REQ_CONTENT_LENGTH_MISMATCH)$/;

export function outcomeOfFailure(thrown: unknown, sent: boolean): Outcome {
  const local = sent ? null : localDialFailure(thrown);
  if (local !== null) return local;
  const code = codeOf(thrown);
  // A name with several addresses fails with one error for each of them and no text of its own.
  const first: unknown = thrown instanceof AggregateError ? thrown.errors[0] : thrown;
  const error = oneLine(errorText(first), LIMITS.errorBytesMax);
  if (NOT_HTTP.test(code) || isBadResponse(thrown)) {
    return { kind: "retry", code: "response_invalid", error: `the receiver's answer is not valid HTTP: ${error}` };
  }
  if (sent) {
    const reset = NOT_SENT[code] === "connection_reset";
    return {
      kind: "unknown",
      code: reset ? "connection_reset" : code === "ETIMEDOUT" ? "timeout" : "connection_failed",
      error: `the request was sent and no answer came: ${error}`,
    };
  }
  if (NOT_SENDABLE.test(code)) return { kind: "reject", code: "request_invalid", error };
  if (NOT_SENT[code] === "tls" || TLS.test(code)) return { kind: "retry", code: "tls", error, alert: true };
  return { kind: "retry", code: NOT_SENT[code] ?? "connection_failed", error };
}

/** Cut short by the deadline or from outside. */
export function outcomeOfCut(sent: boolean, late: boolean, timeoutMs: number): Outcome {
  const why = late ? `within ${timeoutMs} ms` : "before the attempt was cut short";
  return sent
    ? { kind: "unknown", code: late ? "timeout" : "aborted", error: `the request was sent and no answer came ${why}` }
    : { kind: "retry", code: late ? "connect_timeout" : "aborted", error: `the request could not be sent ${why}` };
}

/** undici's parser error has no code of its own; an unasked-for 100 or 101 comes as a plain socket error. */
function isBadResponse(thrown: unknown): boolean {
  if (thrown instanceof Error && thrown.name === "HTTPParserError") return true;
  return codeOf(thrown) === "UND_ERR_SOCKET" && /^bad (?:response|upgrade)$/.test(errorText(thrown));
}
