/** What ends within two weeks, in words: long enough to renew it in working hours. */
import { systemClock } from "../platform/clock.ts";

const SOON_MS = 14 * 86_400_000;

/** Null: it does not end, not so soon, or nobody knows. */
export function endingSoon(what: string, endsMs: number | null): string | null {
  if (endsMs === null) return null;
  const leftMs = endsMs - systemClock.wallMs();
  if (leftMs >= SOON_MS) return null;
  return `${what} ${leftMs > 0 ? "expires" : "expired"} at ${new Date(endsMs).toISOString()}`;
}
