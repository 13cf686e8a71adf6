/** A W3C traceparent as text and as the context of a span elsewhere. */
import type { SpanContext } from "@opentelemetry/api";

const PARTS = /^(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** Null where the text names no span. */
export function spanContextOf(traceparent: string): SpanContext | null {
  const [, traceId, spanId, flags] = PARTS.exec(traceparent) ?? [];
  if (!traceId || !spanId) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags as string, 16) & 1, isRemote: true };
}

export const traceparentText = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${(traceFlags & 1).toString(16).padStart(2, "0")}`;
